package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Liveness is what a socket path turned out to hold.
type Liveness uint8

const (
	// Absent: there is nothing at the path.
	Absent Liveness = iota
	// Stale is a socket of ours without a listener. It may be unlinked.
	Stale
	// Alive is a daemon that speaks the prologue.
	Alive
	// Foreign: anything else. It is never touched.
	Foreign
)

// occupied says that a socket path cannot be had because of a daemon, or else of what has the problem. pid is whose socket it is, 0
// if the system did not say.
func occupied(path string, pid int, problem string) *fault.Fault {
	by := ""
	if pid != 0 {
		by = fmt.Sprintf(" (process %d)", pid)
	}
	held := fault.PlaceOccupied.New("%s %s%s", path, problem, by).
		WithFix("stop it or move it out of the way, or set PWOS_RUNTIME_DIR to another directory")
	if problem == "" {
		held = fault.PlaceServed.New("a daemon%s already serves %s", by, path).
			WithFix("end it with \"pwos shutdown\", or set PWOS_RUNTIME_DIR to another directory")
	}
	return held.With("path", path).With("pid", strconv.Itoa(pid))
}

// probeTimeout bounds how long a probe waits for the first frame. A daemon sends it as soon as it accepts.
const probeTimeout = 2 * time.Second

// finding is what probe saw: the verdict, and the file that it is about.
type finding struct {
	state Liveness
	info  fs.FileInfo // nil for Absent
	err   error       // fault.PlaceServed for Alive, fault.PlaceOccupied for Foreign
}

// probe finds out what lives at the socket path (BRIDGE 4.5.3): it connects and reads the first frame. An error comes from ctx or
// the file system.
//
// BRIDGE takes for stale whatever does not send a Syscall.Authenticate. PROTOCOL 1 and the safety of strangers narrow
// that: stale is a socket that refuses connections, and nothing else. What accepts and stays silent or speaks otherwise
// is a program of somebody's, or a daemon in trouble; in either case taking its path would leave two.
//
// It looks at the file before it connects: connect(2) follows a symbolic link, and refuses a regular file with the
// same error as a stale socket.
func probe(ctx context.Context, path string) (finding, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return finding{state: Absent}, nil
	case err != nil:
		return finding{}, fmt.Errorf("inspect socket: %w", err)
	}
	f := finding{info: info}
	if problem := socketProblem(info, os.Geteuid()); problem != "" {
		return f.foreign(path, 0, problem), nil
	}
	patience, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := connect(patience, path)
	if err == nil {
		f = f.listen(patience, path, conn)
		err = conn.Close()
	} else {
		f, err = f.unconnected(path, err), nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx) // so the verdict is not the socket's doing
	}
	if err != nil {
		return finding{}, fmt.Errorf("probe socket: %w", err)
	}
	return f, nil
}

// foreign is the verdict that something at path, served by process pid, must be left alone.
func (f finding) foreign(path string, pid int, problem string) finding {
	f.state = Foreign
	f.err = occupied(path, pid, problem)
	return f
}

// unconnected is the verdict where connecting ended in connectErr.
func (f finding) unconnected(path string, connectErr error) finding {
	switch {
	case errors.Is(connectErr, syscall.ECONNREFUSED):
		f.state = Stale
		return f
	case errors.Is(connectErr, fs.ErrNotExist): // it went away since
		return finding{state: Absent}
	case errors.Is(connectErr, syscall.EPROTOTYPE):
		return f.foreign(path, 0, "is a socket of another type")
	}
	return f.foreign(path, 0, fmt.Sprintf("is a socket that cannot be reached (%v)", connectErr))
}

// listen is the verdict on what says the first word at the other end of conn.
func (f finding) listen(ctx context.Context, path string, conn *net.UnixConn) finding {
	peer, err := PeerOf(conn)
	if err != nil {
		return f.foreign(path, peer.PID, fmt.Sprintf("is served by a stranger (%v)", err))
	}
	if err := f.greet(ctx, conn); err == nil {
		f.state = Alive
		f.err = occupied(path, peer.PID, "")
		return f
	}
	return f.foreign(path, peer.PID, "is served by something that does not speak the pwos prologue")
}

// errSeen ends a prologue after its first frame.
var errSeen = errors.New("seen")

// greet reads the first frame and says nothing: the daemon sees a client that went away before it answered.
func (f finding) greet(ctx context.Context, nc stream) error {
	conn, err := NewConn(nc, schema.OsMessage, schema.MaxLine)
	if err != nil {
		return err
	}
	err = access.ClientPrologue(ctx, conn, func([]byte, time.Time) ([]byte, error) { return nil, errSeen })
	if errors.Is(err, errSeen) {
		err = nil
	}
	return err
}

// socketProblem says why the file at a socket path is not a usable socket, or "". Its owner must be
// our user, or orElse.
func socketProblem(info fs.FileInfo, orElse int) string {
	switch mode, owner := info.Mode(), ownerOf(info); {
	case mode&fs.ModeSymlink != 0:
		return "is a symbolic link"
	case mode.IsDir():
		return "is a directory"
	case mode&fs.ModeSocket == 0:
		return "is not a socket"
	case owner != os.Geteuid() && owner != orElse:
		return fmt.Sprintf("belongs to user %d", owner)
	}
	return ""
}

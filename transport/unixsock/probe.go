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

// Liveness is the state of a socket path.
type Liveness uint8

const (
	// Absent means that the path does not exist.
	Absent Liveness = iota
	// Stale is a socket of this user without a listener. It may be unlinked.
	Stale
	// Alive is a daemon that speaks the prologue.
	Alive
	// Foreign is anything else. It is never changed.
	Foreign
)

// occupied returns the error for a socket path that is in use: by a daemon if problem is empty, else by a file with
// that problem. pid is the process that listens, 0 if it is not known.
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

// finding is the result of probe: the state of a path, and the file there.
type finding struct {
	state Liveness
	info  fs.FileInfo // nil for Absent
	err   error       // fault.PlaceServed for Alive, fault.PlaceOccupied for Foreign
}

// probe returns the state of the socket path (BRIDGE 4.5.3): it connects and reads the first frame. An error is that of
// ctx or the file system. BRIDGE calls every socket stale that does not send a Syscall.Authenticate. PROTOCOL 1 is
// narrower: only a socket that refuses connections is stale. A process that accepts and sends nothing, or something
// else, is another program or a daemon that hangs; its path must not be taken. probe checks the file before it
// connects: connect(2) follows a symbolic link, and refuses a regular file with the same error as a stale socket.
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
		err = context.Cause(ctx) // the state is not known
	}
	if err != nil {
		return finding{}, fmt.Errorf("probe socket: %w", err)
	}
	return f, nil
}

// foreign returns a finding that path, served by process pid, must not be changed.
func (f finding) foreign(path string, pid int, problem string) finding {
	f.state = Foreign
	f.err = occupied(path, pid, problem)
	return f
}

// unconnected returns the finding after connecting failed with connectErr.
func (f finding) unconnected(path string, connectErr error) finding {
	switch {
	case errors.Is(connectErr, syscall.ECONNREFUSED):
		f.state = Stale
		return f
	case errors.Is(connectErr, fs.ErrNotExist): // it was removed meanwhile
		return finding{state: Absent}
	case errors.Is(connectErr, syscall.EPROTOTYPE):
		return f.foreign(path, 0, "is a socket of another type")
	}
	return f.foreign(path, 0, fmt.Sprintf("is a socket that cannot be reached (%v)", connectErr))
}

// listen returns the finding on the process at the other end of conn.
func (f finding) listen(ctx context.Context, path string, conn *net.UnixConn) finding {
	peer, err := PeerOf(conn)
	if err != nil {
		return f.foreign(path, peer.PID, fmt.Sprintf("is served by a process that is not trusted (%v)", err))
	}
	if err := f.greet(ctx, conn); err == nil {
		f.state = Alive
		f.err = occupied(path, peer.PID, "")
		return f
	}
	return f.foreign(path, peer.PID, "is served by a process that does not send the pwos prologue")
}

// errSeen ends a prologue after its first frame.
var errSeen = errors.New("seen")

// greet reads the first frame and sends nothing: to the daemon, it is a client that closed before it answered.
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

// socketProblem returns the reason why the file at a socket path is not a usable socket, or "". Its owner must be this
// user, or orElse.
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

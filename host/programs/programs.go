// Package programs runs the programs of a kernel's agents on a host. It opens the host for the first program, serves the
// programs' channels, and identifies the program at the other end of a socket.
package programs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/osuser"
	"github.com/promptware-os/pwos/internal/rmtree"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Programs are the programs of a kernel. A kernel without any starts no guard and checks no processes.
type Programs struct {
	Instance string        // see host.Options
	Means    host.Means    // to confine them; see Look
	User     *osuser.User  // the user that agents run as; nil: the user of this process; see Look
	Shim     func() string // see host.Options; called when the host is opened
	Veils    string        // see host.Options
	Line     int           // limit of a line of a channel, in bytes
	Log      *slog.Logger

	watched sync.WaitGroup // goroutines that wait for the end of a program

	mu     sync.Mutex
	closed bool
	opened atomic.Pointer[host.Host]
}

// Host opens the host, or returns the one that is open.
func (p *Programs) Host() (*host.Host, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.opened.Load(); h != nil {
		return h, nil
	}
	if p.closed {
		return nil, host.ErrClosed
	}
	o := host.Options{Instance: p.Instance, Means: &p.Means, Veils: p.Veils, Log: p.Log}
	if p.Shim != nil {
		o.Shim = p.Shim()
	}
	h, err := host.New(o)
	if err != nil {
		return nil, err
	}
	p.opened.Store(h)
	if h.Level() == "none" {
		p.Log.Warn("AGENTS ARE NOT CONFINED: this system has no sandbox for them; sandbox=strict refuses to start", "sandbox", h.Level())
	}
	p.Log.Info("programs of agents are hosted", "sandbox", h.Level(), "sandbox_gaps", h.Gaps())
	return h, nil
}

// Close ends all programs that are left.
func (p *Programs) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if h := p.opened.Load(); h != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // the kernel has ended programs before; the rest get no grace
		h.Close(ctx, 0)
	}
	p.watched.Wait()
}

// Identify identifies the peer of a connection. A process of a hosted program, or a descendant, is that agent, and an
// unidentified one is refused (PROTOCOL 4). So is an agent of another kernel: as the operator here it would escape its
// restrictions there.
func (p *Programs) Identify(conn net.Conn) (access.Peer, error) {
	peer, err := unixsock.PeerOf(conn)
	// Programs that run as another user are admitted as agents; other processes of that user are not.
	h := p.opened.Load()
	foreign := errors.Is(err, fault.AuthPeer) && h != nil && h.RunsAs(peer.UID)
	if err != nil && !foreign {
		return peer, err
	}
	refusal := err
	raw, err := conn.(syscall.Conn).SyscallConn() // PeerOf has checked the type
	if err != nil {
		return peer, fmt.Errorf("find owner of process %d: %w", peer.PID, err)
	}
	var owner *host.Process
	if h != nil {
		owner, err = h.Peer(raw)
	} else {
		err = host.Unhosted(raw)
	}
	if err != nil {
		return peer, fmt.Errorf("find owner of process %d: %w", peer.PID, err)
	}
	switch {
	case owner != nil:
		peer.Agent = owner.PID()
		if peer.PID == os.Getpid() { // the host has connected it
			peer.PID = owner.OSPID()
		}
	case foreign:
		return peer, refusal
	}
	return peer, nil
}

// Suspend stops an agent for a while that connects faster than its connections can be refused, since others would wait in
// the listen queue.
func (p *Programs) Suspend(agent int64) {
	if program := p.program(agent); program != nil {
		p.Log.Warn("agent is suspended: it floods the kernel with connections", "agent", agent)
		program.Suspend()
	}
}

// program returns the running program of an agent, nil if there is none.
func (p *Programs) program(agent int64) *host.Process {
	h := p.opened.Load()
	if h == nil {
		return nil
	}
	for _, program := range h.Processes() {
		if program.PID() == agent {
			return program
		}
	}
	return nil
}

// Busy reports whether an agent has processes that its program started after a time; see host.Process.
func (p *Programs) Busy(agent int64, since time.Time) bool {
	program := p.program(agent)
	return program != nil && program.Busy(since)
}

// Maker returns what host.Process.Maker does, of an agent's program.
func (p *Programs) Maker(agent int64, client, server netip.AddrPort) (program string, started []time.Time, ok bool) {
	of := p.program(agent)
	if of == nil {
		return "", nil, false
	}
	return of.Maker(client, server)
}

// Freeze stops all processes of an agent until the function that it returns is called.
func (p *Programs) Freeze(agent int64) (thaw func()) {
	program := p.program(agent)
	if program == nil {
		return func() {}
	}
	return program.Freeze()
}

// Processes returns the running programs, in no particular order.
func (p *Programs) Processes() []*host.Process {
	h := p.opened.Load()
	if h == nil {
		return nil
	}
	return h.Processes()
}

// Forget removes the directories of agents that the kernel has forgotten.
func (p *Programs) Forget(dir string, remembered func(pid int64) bool) {
	folders, err := os.ReadDir(dir)
	if err != nil {
		return // there was never an agent
	}
	for _, f := range folders {
		pid, err := strconv.ParseInt(f.Name(), 10, 64)
		if err != nil || remembered(pid) {
			continue
		}
		if err := rmtree.Dir(filepath.Join(dir, f.Name())); err != nil {
			p.Log.Warn("directory of a forgotten agent not removed", "pid", pid, "error", err)
		}
	}
}

// Look finds the machine's means to confine programs, and the user that they run as: a user of the configuration, by name or number, or
// "" for that of this process.
func (p *Programs) Look(user string) (err error) {
	switch p.Means, err = host.Probe(); {
	case errors.Is(err, host.ErrUnsupported): // this kernel cannot host programs
		p.Means = host.Means{}
	case err != nil:
		return err
	}
	if user == "" {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("configuration: agents.user: only a kernel that is user 0 can run agents as %s: leave it out, or start the kernel as root", user)
	}
	found, err := osuser.Find(user)
	if err != nil {
		return fmt.Errorf("configuration: agents.user: %w", err)
	}
	p.User = found
	if p.User.UID == 0 {
		return fmt.Errorf("configuration: agents.user: %s is user 0, like the kernel: name another user", user)
	}
	return nil
}

// UserOf returns the user that a program runs as which names one; nil: that of this process.
func (p *Programs) UserOf(named *string) (*osuser.User, error) {
	if named == nil {
		return p.User, nil
	}
	u, err := osuser.Find(*named)
	switch {
	case err != nil:
		return nil, err
	case u.UID == os.Geteuid():
		return nil, nil
	case os.Geteuid() != 0:
		return nil, fmt.Errorf("only a kernel that is user 0 can run a program as user %s: leave it out, or start the kernel as root", *named)
	}
	return u, nil
}

// GiveHome gives the files that this process's user has created in a home directory to the user of a program, if it is another.
// A file with a second hard link keeps its owner, since the other name may be in another user's directory.
func GiveHome(dir string, u *osuser.User) (err error) {
	if u == nil {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open home: %w", errors.Unwrap(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = root.Lstat(path)
		}
		if err == nil {
			own, ok := info.Sys().(*syscall.Stat_t)
			if ok && int(own.Uid) == os.Geteuid() && (info.IsDir() || own.Nlink == 1) {
				err = root.Lchown(path, u.UID, u.GID)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another program with the same home may have removed it
			return fmt.Errorf("give home to user %d: %w", u.UID, errors.Unwrap(err))
		}
		return nil
	})
}

// Watch calls then when no process of a program is left. Close waits for that.
func (p *Programs) Watch(program *host.Process, then func()) {
	p.watched.Go(func() {
		<-program.Done()
		then()
	})
}

package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host/confine"
)

// The host carries out the connects of confined programs (confine.Calls), so the other end of a connection to the
// kernel's socket would seem to be the kernel. The host gives the program's socket a name that nobody can guess before it
// connects it, by which Peer finds the program.

// claimPrefix begins the abstract names of such sockets.
const claimPrefix = "@pwos-program-"

// carryOut answers the program's calls of connect until none of its processes is left.
func (p *Process) carryOut(c *confine.Calls) {
	ctx, end := context.WithCancel(context.Background())
	c.Kernel, c.User, c.Exec = p.kernelSocket, p.command.user(), p.execs(ctx)
	if p.plan.Net == confine.NetOpen || !p.plan.Network {
		c.Owns = remember(p.hasOpen)
	}
	p.host.workers.Go(func() { // the host waits for this program too
		served := make(chan struct{})
		go func() {
			defer close(served)
			c.Serve()
		}()
		<-p.done
		end()
		_ = c.Close() // nothing was written to it
		<-served
		p.host.mu.Lock()
		defer p.host.mu.Unlock()
		for name, of := range p.host.claims {
			if of == p {
				delete(p.host.claims, name)
			}
		}
	})
}

// execs returns the function that tells Command.Exec of execs. The first one is the program itself, which its init asks for: that cannot
// be read, but it is known.
func (p *Process) execs(ctx context.Context) func(*confine.Exec) unix.Errno {
	began := false
	return func(e *confine.Exec) unix.Errno {
		if !began {
			began, e.First, e.Hidden, e.Missing, e.Cut = true, true, false, false, false
			e.Dir, e.Args = p.command.Dir, p.command.Argv
			if e.Path = p.command.executed(p.program); !filepath.IsAbs(e.Path) {
				e.Path = filepath.Join(e.Dir, e.Path)
			}
		}
		return p.command.Exec(ctx, e)
	}
}

// kernelSocket returns how the program's socket is connected to a socket of the kernel or the signer; nil if the file is none.
func (p *Process) kernelSocket(st *unix.Stat_t, _ int) func(int, func() unix.Errno) unix.Errno {
	if p.signer.is(uint64(st.Dev), st.Ino) {
		return func(_ int, connect func() unix.Errno) unix.Errno { return connect() }
	}
	entries, err := os.ReadDir(p.command.Sockets.Source)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		var own unix.Stat_t
		if unix.Lstat(filepath.Join(p.command.Sockets.Source, entry.Name()), &own) == nil && own.Dev == st.Dev && own.Ino == st.Ino {
			return p.claimed
		}
	}
	return nil
}

// claimed connects a copy of the program's socket as the program's.
func (p *Process) claimed(socket int, connect func() unix.Errno) unix.Errno {
	name := claimPrefix + rand.Text()
	if err := unix.Bind(socket, &unix.SockaddrUnix{Name: name}); err != nil {
		if name = p.claimOf(socket); name == "" { // the program has bound it itself
			return unix.EACCES
		}
	}
	p.host.mu.Lock()
	p.host.claims[name] = p
	p.host.mu.Unlock()
	return connect()
}

// claimOf returns the name of a socket that claimed has named in an earlier call, or "".
func (p *Process) claimOf(socket int) string {
	at, err := unix.Getsockname(socket)
	if own, ok := at.(*unix.SockaddrUnix); err == nil && ok && strings.HasPrefix(own.Name, claimPrefix) {
		return own.Name
	}
	return ""
}

// claimant returns the program whose connection the host has made, from the kernel's end.
func (h *Host) claimant(fd int) (*Process, error) {
	at, err := unix.Getpeername(fd)
	if err != nil {
		return nil, fmt.Errorf("look at peer: %w", os.NewSyscallError("getpeername", err))
	}
	peer, ok := at.(*unix.SockaddrUnix)
	if !ok || !strings.HasPrefix(peer.Name, claimPrefix) {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.claims[peer.Name]
	delete(h.claims, peer.Name)
	if p != nil {
		select {
		case <-p.done:
		default:
			return p, nil
		}
	}
	return nil, fmt.Errorf("connection of a program that has ended: %w", ErrGone)
}

// remember returns owns with a memory of the sockets that are the program's, since owns looks at all processes. The system
// numbers sockets in a row, so that another one does not get the number soon. The function is not safe for concurrent use.
func remember(owns func(uint32) bool) func(uint32) bool {
	const most = 1024
	known := map[uint32]bool{}
	return func(inode uint32) bool {
		if known[inode] {
			return true
		}
		if !owns(inode) {
			return false
		}
		if len(known) == most {
			clear(known)
		}
		known[inode] = true
		return true
	}
}

// hasOpen reports whether a process of the program has the socket with that inode open.
func (p *Process) hasOpen(inode uint32) bool {
	found, err := p.host.search.fresh()
	if err != nil {
		return false
	}
	want := "socket:[" + strconv.FormatUint(uint64(inode), 10) + "]"
	for _, pid := range found[p.mark] {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it has ended
		}
		for _, entry := range entries {
			if to, err := os.Readlink(filepath.Join(dir, entry.Name())); err == nil && to == want {
				return true
			}
		}
	}
	return false
}

// made reports whether this process made a connection, from the other end.
func made(conn syscall.RawConn) (is bool, err error) {
	var peer *unix.Ucred
	controlErr := conn.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(controlErr, err); err != nil {
		return false, fmt.Errorf("look at peer: %w", err)
	}
	return int(peer.Pid) == os.Getpid(), nil
}

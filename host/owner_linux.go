package host

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Owner returns the agent that a process belongs to, or nil if it is not a descendant of a hosted program. Errors wrap
// ErrGone, ErrStranger, ErrTampered or ErrExhausted.
//
// For a process that is known by a socket, use Peer: its number may have been reused.
func (h *Host) Owner(osPID int) (*Process, error) {
	locks, rss, err := limitsOf(osPID)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("process %d: %w", osPID, ErrGone)
	case errors.Is(err, unix.EPERM) && os.Geteuid() == 0:
		// Programs may run as another user, so this may be one of them.
		return nil, fmt.Errorf("process %d is another user's, and cannot be looked at: %w", osPID, ErrTampered)
	case errors.Is(err, unix.EPERM):
		return nil, nil // of another user; an agent cannot become that user
	case err != nil:
		return nil, fmt.Errorf("look at process %d: %w", osPID, err)
	case locks == unix.RLIM_INFINITY:
		return nil, nil // an agent cannot raise it again
	}
	is, err := boundTo(osPID)
	switch {
	case exhausted(err):
		return nil, fmt.Errorf("process %d: %w: %w", osPID, ErrExhausted, err)
	case !is:
		return nil, nil // an agent has lowered the limits; the process itself is not an agent's
	}
	m, ok := readMark(locks, rss)
	if !ok {
		return nil, fmt.Errorf("process %d: %w", osPID, ErrTampered)
	}
	h.mu.Lock()
	p := h.agents[m]
	h.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("process %d: %w", osPID, ErrStranger)
	}
	return p, nil
}

// Peer returns the agent whose process made the connection to a Unix socket, or nil. It may be called once for a connection.
// Errors are those of Owner.
//
// Since Linux 6.5 the socket refers to the process that connected, so that an ended peer is detected even if its number was
// reused. Earlier systems know only the number.
func (h *Host) Peer(conn syscall.RawConn) (*Process, error) {
	var p *Process
	own, err := made(conn)
	if err == nil && own {
		controlErr := conn.Control(func(fd uintptr) { p, err = h.claimant(int(fd)) })
		err = errors.Join(controlErr, err)
	}
	if err != nil || p != nil {
		return p, err
	}
	return peer(conn, h.Owner)
}

// Unhosted returns an error that wraps ErrStranger or ErrTampered if the process that made the connection is an agent of
// any host. A kernel that hosts nothing needs it: otherwise an agent of another kernel of the same user would count as the
// operator. A process with the caller's own mark is accepted, since an agent may run a kernel.
func Unhosted(conn syscall.RawConn) error {
	_, err := peer(conn, stranger)
	return err
}

// stranger is Owner for a kernel that hosts nothing.
func stranger(osPID int) (*Process, error) {
	ownLocks, ownRSS, err := limitsOf(0)
	if err != nil {
		return nil, fmt.Errorf("look at own limits: %w", err)
	}
	locks, rss, err := limitsOf(osPID)
	if err == nil && locks == ownLocks && rss == ownRSS {
		return nil, nil
	}
	owner, err := new(Host).Owner(osPID)
	if errors.Is(err, ErrTampered) && ownLocks != unix.RLIM_INFINITY {
		return nil, nil // no marks, if this process itself has such limits
	}
	return owner, err
}

// peer finds the process that made a connection, and calls owner to find its agent.
func peer(conn syscall.RawConn, owner func(osPID int) (*Process, error)) (p *Process, err error) {
	controlErr := conn.Control(func(fd uintptr) { p, err = peerOf(int(fd), owner) })
	if controlErr != nil {
		return nil, fmt.Errorf("look at peer: %w", controlErr)
	}
	return p, err
}

// peerOf is peer for a descriptor.
func peerOf(fd int, owner func(osPID int) (*Process, error)) (*Process, error) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, fmt.Errorf("look at peer: %w", os.NewSyscallError("getsockopt", err))
	}
	if peer.Pid <= 0 {
		return nil, nil // its PID namespace is not visible from here, so it is not a child of this process
	}
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	switch {
	case errors.Is(err, unix.ENOPROTOOPT):
		return owner(int(peer.Pid))
	case exhausted(err):
		return nil, fmt.Errorf("process %d: %w: %w", peer.Pid, ErrExhausted, err)
	case err != nil: // ESRCH, EINVAL: it was already reaped
		return nil, fmt.Errorf("process %d: %w", peer.Pid, ErrGone)
	}
	defer closeFD(pidfd)
	p, err := owner(int(peer.Pid))
	// The order matters: if the process has not ended, it had that number when its limits were read.
	if ended(pidfd) {
		return nil, fmt.Errorf("process %d: %w", peer.Pid, ErrGone)
	}
	return p, err
}

// exhausted reports whether an error means that there is no free descriptor.
func exhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

package host

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Owner returns the agent that a process of the system belongs to, or nil where it belongs to none: it was started by
// nobody that is hosted, at whatever distance. Errors wrap ErrGone, ErrStranger, ErrTampered or ErrExhausted.
//
// Whoever has the number from a socket should use Peer: a number can pass to another process in between.
func (h *Host) Owner(osPID int) (*Process, error) {
	locks, rss, err := limitsOf(osPID)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("process %d: %w", osPID, ErrGone)
	case errors.Is(err, unix.EPERM) && h.user != nil:
		// Programs run as another user, so that this may be one of theirs.
		return nil, fmt.Errorf("process %d is another user's, and cannot be looked at: %w", osPID, ErrTampered)
	case errors.Is(err, unix.EPERM):
		return nil, nil // another user's; an agent cannot become one
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
		return nil, nil // an agent has lowered it, which is none itself
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

// Peer returns the agent whose process made the connection to a Unix socket, or nil where none did. Errors are as Owner's.
//
// Since Linux 6.5 the socket itself holds on to the process that connected, so that a peer which ended is found out even
// when its number has passed to another process. Before, the number alone is asked for.
func (h *Host) Peer(conn syscall.RawConn) (*Process, error) {
	return peer(conn, h.Owner)
}

// Unhosted returns an error that wraps ErrStranger or ErrTampered where the process that made the connection is an agent of
// whatever host. It is for a kernel that hosts nothing, to which the agent of another one of the same user would pass for
// the operator. A process that is bound as the caller is itself is let pass: an agent may run a kernel of its own.
func Unhosted(conn syscall.RawConn) error {
	_, err := peer(conn, stranger)
	return err
}

// stranger is Owner for who hosts nothing.
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
		return nil, nil // limits that mean nothing are no marks where this process has some itself
	}
	return owner, err
}

// peer asks who made a connection, and owner whose that process is.
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
		return nil, nil // it comes from a namespace that this one cannot see into: no child of ours does
	}
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	switch {
	case errors.Is(err, unix.ENOPROTOOPT):
		return owner(int(peer.Pid))
	case exhausted(err):
		return nil, fmt.Errorf("process %d: %w: %w", peer.Pid, ErrExhausted, err)
	case err != nil: // ESRCH, EINVAL: it was reaped before we asked
		return nil, fmt.Errorf("process %d: %w", peer.Pid, ErrGone)
	}
	defer closeFD(pidfd)
	p, err := owner(int(peer.Pid))
	// Asked in this order: a process that lives now lived when its limits were read, and had that number.
	if ended(pidfd) {
		return nil, fmt.Errorf("process %d: %w", peer.Pid, ErrGone)
	}
	return p, err
}

// exhausted reports whether an error says that this process, or the system, has no descriptor left.
func exhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

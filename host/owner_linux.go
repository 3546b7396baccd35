package host

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Owner returns the agent that a process of the system belongs to, or nil where it belongs to none: it was started by
// nobody that is hosted, at whatever distance. Errors wrap ErrGone, ErrStranger or ErrTampered.
//
// Whoever has the number from a socket should use Peer: a number can pass to another process in between.
func (h *Host) Owner(osPID int) (*Process, error) {
	locks, rss, err := limitsOf(osPID)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("process %d: %w", osPID, ErrGone)
	case errors.Is(err, unix.EPERM):
		return nil, nil // another user's; an agent cannot become one
	case err != nil:
		return nil, fmt.Errorf("look at process %d: %w", osPID, err)
	case locks == unix.RLIM_INFINITY:
		return nil, nil // an agent cannot raise it again
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
func (h *Host) Peer(conn syscall.RawConn) (owner *Process, err error) {
	controlErr := conn.Control(func(fd uintptr) { owner, err = h.peer(int(fd)) })
	if controlErr != nil {
		return nil, fmt.Errorf("look at peer: %w", controlErr)
	}
	return owner, err
}

// peer is Peer for a descriptor.
func (h *Host) peer(fd int) (*Process, error) {
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
		return h.Owner(int(peer.Pid))
	case err != nil: // ESRCH, EINVAL: it was reaped before we asked
		return nil, fmt.Errorf("process %d: %w", peer.Pid, ErrGone)
	}
	defer closeFD(pidfd)
	owner, err := h.Owner(int(peer.Pid))
	// Asked in this order: a process that lives now lived when its limits were read, and had that number.
	if ended(pidfd) {
		return nil, fmt.Errorf("process %d: %w", peer.Pid, ErrGone)
	}
	return owner, err
}

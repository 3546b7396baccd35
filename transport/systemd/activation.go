// Package systemd is the daemon's side of a service manager's protocols: socket activation (sd_listen_fds), readiness
// (sd_notify).
package systemd

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// firstFD is the first of the passed descriptors, which are consecutive.
const firstFD = 3

// Socket is a listening socket that the manager bound, with its name there (FileDescriptorName=). The manager owns the
// path: closing the socket does not unlink it.
type Socket struct {
	Name     string // "" if it has none
	Listener *net.UnixListener
}

// Sockets takes over the sockets that were passed to this process, in the manager's order; none if it was not started
// by socket activation. It must be called once, before anything else opens a file. It hides the descriptors and
// variables from child processes. Anything other than listening Unix stream sockets is an error.
func Sockets(getenv func(string) string, unsetenv func(string) error) ([]Socket, error) {
	count, names, err := announced(getenv, os.Getpid())
	// Removed even if they are meant for another process: a child could get the PID that they name.
	for _, name := range []string{"LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		err = errors.Join(err, unsetenv(name))
	}
	if err != nil {
		return nil, fmt.Errorf("socket activation: %w", err)
	}
	var sockets []Socket
	for i := range count {
		ln, err := listener(firstFD + i)
		if err != nil {
			for _, s := range sockets {
				err = errors.Join(err, s.Listener.Close())
			}
			return nil, fmt.Errorf("socket activation: descriptor %d: %w", firstFD+i, err)
		}
		s := Socket{Listener: ln}
		if names != nil {
			s.Name = names[i]
		}
		sockets = append(sockets, s)
	}
	return sockets, nil
}

// announced returns the number of passed sockets, and their names; nil if the manager gives none.
func announced(getenv func(string) string, pid int) (count int, names []string, err error) {
	if getenv("LISTEN_PID") != strconv.Itoa(pid) {
		return 0, nil, nil // none were passed, or they were passed to the parent
	}
	count, err = strconv.Atoi(getenv("LISTEN_FDS"))
	if err != nil || count < 0 {
		return 0, nil, fmt.Errorf("LISTEN_FDS=%q is not a count", getenv("LISTEN_FDS"))
	}
	list := getenv("LISTEN_FDNAMES")
	if list == "" || count == 0 {
		return count, nil, nil
	}
	names = strings.Split(list, ":")
	if len(names) != count {
		return 0, nil, fmt.Errorf("LISTEN_FDNAMES=%q names %d sockets, LISTEN_FDS says %d", list, len(names), count)
	}
	return count, names, nil
}

// listener makes a listener of the descriptor fd, which it closes. It does not touch another kind of descriptor: if the
// count is wrong, that may belong to this program.
func listener(fd int) (*net.UnixListener, error) {
	if err := checkListening(fd); err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "inherited socket")
	defer file.Close()
	ln, err := net.FileListener(file) // a duplicate, close-on-exec, which does not unlink its path
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return ln.(*net.UnixListener), nil // checkListening has checked the type
}

// checkListening returns an error unless fd is a listening Unix stream socket. It does not take over fd.
func checkListening(fd int) error {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	listening, listenErr := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	address, nameErr := unix.Getsockname(fd)
	if err := cmp.Or(err, listenErr, nameErr); err != nil {
		return fmt.Errorf("inspect socket: %w", err)
	}
	if _, ok := address.(*unix.SockaddrUnix); !ok || kind != unix.SOCK_STREAM || listening == 0 {
		return errors.New("is not a listening Unix stream socket (ListenStream= with a path)")
	}
	return nil
}

// Names of the two sockets of PROTOCOL 1.
const (
	KernelName = "kernel"
	EventsName = "events"
)

// Assign returns the canonical and the legacy socket (PROTOCOL 1), nil for one that was not passed. It goes by the
// names "kernel" and "events" or, if no socket has either name, by the order: kernel first. A further socket is an
// error, since its clients would wait forever.
func Assign(sockets []Socket) (kernel, events *net.UnixListener, err error) {
	slots := map[string]**net.UnixListener{KernelName: &kernel, EventsName: &events}
	named := false
	for _, s := range sockets {
		named = named || slots[s.Name] != nil
	}
	order := []string{KernelName, EventsName}
	if !named && len(sockets) > len(order) {
		return nil, nil, fmt.Errorf("socket activation: %d sockets, but only two uses: %v", len(sockets), order)
	}
	for i, s := range sockets {
		name := s.Name
		if !named {
			name = order[i]
		}
		slot := slots[name]
		if slot == nil || *slot != nil {
			return nil, nil, fmt.Errorf("socket activation: unknown or repeated socket name %q: use each of %v once", name, order)
		}
		*slot = s.Listener
	}
	return kernel, events, nil
}

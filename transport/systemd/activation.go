// Package systemd is the daemon's side of two small protocols of its service manager: sockets passed at the start
// (sd_listen_fds), states told back (sd_notify).
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

// firstFD is where the passed descriptors begin, one after the other.
const firstFD = 3

// Socket is a listening socket that the manager bound, by the name that it has there (FileDescriptorName=). Its path is
// the manager's: who closes it does not unlink it.
type Socket struct {
	Name     string // "" if it has none
	Listener *net.UnixListener
}

// Sockets takes the sockets that were passed to this process, in the manager's order; none if it was not started
// that way. It is called once, before anything else opens a file. Descriptors and variables are hidden from children.
// Anything other than listening Unix stream sockets is an error, since what serves them all cannot be served.
func Sockets(getenv func(string) string, unsetenv func(string) error) ([]Socket, error) {
	count, names, err := announced(getenv, os.Getpid())
	// Removed even if they are meant for another process: a child could get its parent's number.
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

// announced reads how many sockets were passed, with their names, nil if none were told.
func announced(getenv func(string) string, pid int) (count int, names []string, err error) {
	if getenv("LISTEN_PID") != strconv.Itoa(pid) {
		return 0, nil, nil // none were passed, or they are the parent's
	}
	count, err = strconv.Atoi(getenv("LISTEN_FDS"))
	if err != nil || count < 0 {
		return 0, nil, fmt.Errorf("LISTEN_FDS=%q is no count", getenv("LISTEN_FDS"))
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

// listener makes the descriptor fd a listener, and closes it if that is what it was. Another one is not touched: where
// the count is wrong it may be one of this program's own.
func listener(fd int) (*net.UnixListener, error) {
	if err := checkListening(fd); err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "inherited socket")
	defer file.Close()
	ln, err := net.FileListener(file) // a duplicate, hidden from children; one made like this unlinks nothing
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return ln.(*net.UnixListener), nil // its address was checked
}

// checkListening looks at fd without taking hold of it.
func checkListening(fd int) error {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	listening, listenErr := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	address, nameErr := unix.Getsockname(fd)
	if err := cmp.Or(err, listenErr, nameErr); err != nil {
		return fmt.Errorf("inspect socket: %w", err)
	}
	if _, ok := address.(*unix.SockaddrUnix); !ok || kind != unix.SOCK_STREAM || listening == 0 {
		return errors.New("is no listening Unix stream socket (ListenStream= with a path)")
	}
	return nil
}

// The names that tell the two sockets of PROTOCOL 1 apart.
const (
	KernelName = "kernel"
	EventsName = "events"
)

// Assign says which socket is the canonical and which the legacy one (PROTOCOL 1), nil for one that was not passed.
// The names "kernel" and "events" decide; where no socket has either of them, the order does: kernel first. More than
// there is a use for is an error, since clients of the rest would wait forever.
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
			return nil, nil, fmt.Errorf("socket activation: no use for a socket named %q: name one %v each", name, order)
		}
		*slot = s.Listener
	}
	return kernel, events, nil
}

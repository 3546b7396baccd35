// Package systemd is the daemon's side of two small protocols of its service manager: sockets handed over at the start
// (sd_listen_fds), states told back (sd_notify).
package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// firstFD is where the handed over descriptors begin, one after the other.
const firstFD = 3

// variables are what the manager tells by. None of them is a child's business.
func variables() []string {
	return []string{"LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES"}
}

// Environment is the part of a process's environment that is needed here. OS is the process's own.
type Environment interface {
	Getenv(name string) string
	Unsetenv(name string) error
}

// OS is the Environment of this process.
type OS struct{}

// Getenv is os.Getenv.
func (OS) Getenv(name string) string { return os.Getenv(name) }

// Unsetenv is os.Unsetenv.
func (OS) Unsetenv(name string) error { return os.Unsetenv(name) }

// Socket is a listening socket that the manager bound, by the name that it has there (FileDescriptorName=). Its path is
// the manager's: who closes it does not unlink it.
type Socket struct {
	Name     string // "" where none was told
	Listener *net.UnixListener
}

// Sockets takes the sockets that were handed to this process, in the manager's order; none where it was not started
// that way. It is called once, before anything else opens a file. Descriptors and variables are hidden from children.
// Anything other than listening Unix stream sockets is an error, since what serves them all cannot be served.
func Sockets(env Environment) ([]Socket, error) {
	count, names, err := announced(env, os.Getpid())
	// Hidden whoever they are meant for: a child that looks could take its parent's number for its own.
	for _, name := range variables() {
		err = errors.Join(err, env.Unsetenv(name))
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

// announced reads how many sockets were handed over, with their names, nil where none were told.
func announced(env Environment, pid int) (count int, names []string, err error) {
	if env.Getenv("LISTEN_PID") != strconv.Itoa(pid) {
		return 0, nil, nil // meant for nobody, or for the process that started this one
	}
	count, err = strconv.Atoi(env.Getenv("LISTEN_FDS"))
	if err != nil || count < 0 {
		return 0, nil, fmt.Errorf("LISTEN_FDS=%q is no count", env.Getenv("LISTEN_FDS"))
	}
	list := env.Getenv("LISTEN_FDNAMES")
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
	if err != nil {
		return fmt.Errorf("inspect socket: %w", err)
	}
	listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return fmt.Errorf("inspect socket: %w", err)
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return fmt.Errorf("inspect socket: %w", err)
	}
	if _, ok := address.(*unix.SockaddrUnix); !ok || kind != unix.SOCK_STREAM || listening == 0 {
		return errors.New("is no listening Unix stream socket (ListenStream= with a path)")
	}
	return nil
}

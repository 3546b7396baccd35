package unixsock_test

import (
	"errors"
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// TestDialRefusesAnotherUsersListener: a socket of another user's listener is refused. Only root can make one in a
// private directory.
func TestDialRefusesAnotherUsersListener(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 { // only root can set that up
		return
	}
	places := privatePlaces(t)
	ln := listenAs(t, places.KernelSocket, 12345)
	defer ln.Close()

	_, err := unixsock.Dial(t.Context(), places.KernelSocket)
	if !errors.Is(err, fault.AuthPeer) || fault.Of(err).Detail("uid") != "12345" {
		t.Errorf("dial: got %v, want fault.AuthPeer", err)
	}
	state, err := unixsock.Probe(t.Context(), places.KernelSocket)
	if state != unixsock.Foreign || err == nil {
		t.Errorf("probe: got %d, %v, want Foreign", state, err)
	}
}

// listenAs listens at path as the user uid: the system reports the caller of listen(2).
func listenAs(t *testing.T, path string, uid int) net.Listener {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	listening := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread, with its user, ends with the goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			listening <- errno
			return
		}
		listening <- unix.Listen(fd, 8)
	}()
	must(t, <-listening)
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	ln, err := net.FileListener(file)
	must(t, err)
	return ln
}

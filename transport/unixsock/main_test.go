package unixsock_test

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/transport/unixsock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tempPlaces returns places in a directory that does not exist yet. Its path is short, as those of sockets must be.
func tempPlaces(t testing.TB) unixsock.Places {
	t.Helper()
	dir := testkit.Dir(t)
	return unixsock.PlacesIn(filepath.Join(dir, "pwos"))
}

// privatePlaces returns tempPlaces, and makes the directory.
func privatePlaces(t testing.TB) unixsock.Places {
	t.Helper()
	places := tempPlaces(t)
	must(t, unixsock.EnsurePrivateDir(places.Dir))
	return places
}

// locked returns privatePlaces, and holds the lock until the test ends.
func locked(t testing.TB) (unixsock.Places, *unixsock.Lock) {
	t.Helper()
	places := privatePlaces(t)
	lock, err := unixsock.AcquireInstanceLock(places.Lock)
	must(t, err)
	t.Cleanup(func() { must(t, lock.Release()) })
	return places, lock
}

// serveRaw listens at path with package net and serves each connection with serve.
func serveRaw(t testing.TB, path string, serve func(net.Conn)) {
	t.Helper()
	ln, err := net.Listen("unix", path)
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serve(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-ended
	})
}

// waitEOF reads until the other end closes.
func waitEOF(conn net.Conn) {
	_, _ = bufio.NewReader(conn).ReadString(0)
}

// leaveStale makes a socket file without a listener at path.
func leaveStale(t testing.TB, path string) {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	ln.SetUnlinkOnClose(false)
	must(t, ln.Close())
}

func inode(t testing.TB, path string) os.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	return info
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listenWithQueue listens at path with a queue of that length; package net always uses the maximum.
func listenWithQueue(t testing.TB, path string, length int) net.Listener {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	unix.CloseOnExec(fd)
	must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	must(t, unix.Listen(fd, length))
	file := os.NewFile(uintptr(fd), path)
	ln, err := net.FileListener(file)
	must(t, err)
	must(t, file.Close())
	return ln
}

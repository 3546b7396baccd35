package unixsock_test

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/transport/unixsock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tempPlaces returns places in a fresh private directory. Its path is short, unlike t.TempDir's, for the sockets' sake.
func tempPlaces(t testing.TB) unixsock.Places {
	t.Helper()
	dir := testkit.Dir(t)
	return unixsock.PlacesIn(filepath.Join(dir, "pwos"))
}

// privatePlaces is tempPlaces with the runtime directory made.
func privatePlaces(t testing.TB) unixsock.Places {
	t.Helper()
	places := tempPlaces(t)
	must(t, unixsock.EnsurePrivateDir(places.Dir))
	return places
}

// locked is privatePlaces with the lock held until the test ends.
func locked(t testing.TB) (unixsock.Places, *unixsock.Lock) {
	t.Helper()
	places := privatePlaces(t)
	lock, err := unixsock.AcquireInstanceLock(places.Lock)
	must(t, err)
	t.Cleanup(func() { must(t, lock.Release()) })
	return places, lock
}

// serveRaw listens at path the ordinary way and runs each connection through serve.
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

// leaveStale leaves a socket file at path that nobody listens on.
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

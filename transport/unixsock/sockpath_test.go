package unixsock_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

func TestSocketPathLimit(t *testing.T) {
	t.Parallel()
	if want := map[string]int{"linux": 107, "darwin": 103}[runtime.GOOS]; want != 0 && unixsock.MaxSocketPath != want {
		t.Errorf("limit is %d, want %d", unixsock.MaxSocketPath, want)
	}
	longest := "/" + strings.Repeat("x", unixsock.MaxSocketPath-1)
	must(t, unixsock.CheckSocketPath(longest))
	err := unixsock.CheckSocketPath(longest + "y")
	if !errors.Is(err, fault.PlacePathTooLong) {
		t.Fatalf("got %v, want fault.PlacePathTooLong", err)
	}
	for _, want := range []string{longest + "y", strconv.Itoa(unixsock.MaxSocketPath + 1), "PWOS_RUNTIME_DIR"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %s", err, want)
		}
	}
}

// The limit is the system's: a path of just that length can be listened at, hidden name and all, and dialed.
func TestLongestSocketPathWorks(t *testing.T) {
	t.Parallel()
	parent := filepath.Dir(tempPlaces(t).Dir)
	pad := unixsock.MaxSocketPath - len(parent) - len("//kernel.sock")
	places := unixsock.PlacesIn(filepath.Join(parent, strings.Repeat("d", pad)))
	must(t, unixsock.EnsurePrivateDir(places.Dir))
	if len(places.KernelSocket) != unixsock.MaxSocketPath {
		t.Fatalf("the test's path has %d bytes", len(places.KernelSocket))
	}
	lock, err := unixsock.AcquireInstanceLock(places.Lock)
	must(t, err)
	listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket)
	must(t, err)
	conn, err := net.Dial("unix", places.KernelSocket)
	must(t, err)
	must(t, conn.Close())
	must(t, listeners[0].Close())
	must(t, lock.Release())

	if _, err := os.Lstat(places.KernelSocket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if got, most := len(unixsock.HiddenName()), len("kernel.sock"); got > most {
		t.Errorf("hidden names have %d bytes, more than %d", got, most)
	}
}

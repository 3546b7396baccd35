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

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestPlacesFollowTheEnvironment(t *testing.T) {
	t.Parallel()
	runtime := func(getenv func(string) string) string { return unixsock.RuntimeDir(getenv, 1000) }
	state := func(getenv func(string) string) string { return unixsock.StateDir(getenv, "/home/u") }
	config := func(getenv func(string) string) string { return unixsock.ConfigFile(getenv, "/home/u") }
	tests := []struct {
		name  string
		place func(func(string) string) string
		env   map[string]string
		want  string
	}{
		{"runtime: nothing set", runtime, nil, "/tmp/pwos-1000"},
		{"runtime: TMPDIR", runtime, map[string]string{"TMPDIR": "/var/t"}, "/var/t/pwos-1000"},
		{"runtime: XDG before TMPDIR", runtime, map[string]string{"TMPDIR": "/var/t", "XDG_RUNTIME_DIR": "/run/user/1000"}, "/run/user/1000/pwos"},
		{"runtime: PWOS_RUNTIME_DIR before all", runtime, map[string]string{"PWOS_RUNTIME_DIR": "/r/", "TMPDIR": "/t", "XDG_RUNTIME_DIR": "/x"}, "/r"},
		{"runtime: a relative XDG_RUNTIME_DIR is ignored", runtime, map[string]string{"XDG_RUNTIME_DIR": "x", "TMPDIR": "t"}, "/tmp/pwos-1000"},
		{"runtime: a relative PWOS_RUNTIME_DIR is kept, and refused later", runtime, map[string]string{"PWOS_RUNTIME_DIR": "r"}, "r"},
		{"state: nothing set", state, nil, "/home/u/.local/state/pwos"},
		{"state: XDG", state, map[string]string{"XDG_STATE_HOME": "/s"}, "/s/pwos"},
		{"state: relative XDG", state, map[string]string{"XDG_STATE_HOME": "s"}, "/home/u/.local/state/pwos"},
		{"state: PWOS_STATE_DIR before XDG", state, map[string]string{"XDG_STATE_HOME": "/s", "PWOS_STATE_DIR": "/mine"}, "/mine"},
		{"config: nothing set", config, nil, "/home/u/.config/pwos/config.toml"},
		{"config: XDG", config, map[string]string{"XDG_CONFIG_HOME": "/c"}, "/c/pwos/config.toml"},
		{"config: relative XDG", config, map[string]string{"XDG_CONFIG_HOME": "c"}, "/home/u/.config/pwos/config.toml"},
		{"config: PWOS_CONFIG before XDG", config, map[string]string{"XDG_CONFIG_HOME": "/c", "PWOS_CONFIG": "/etc/p.toml"}, "/etc/p.toml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.place(env(tt.env)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestPlacesInOneDirectory(t *testing.T) {
	t.Parallel()
	want := unixsock.Places{
		Dir:          "/r/pwos",
		KernelSocket: "/r/pwos/kernel.sock",
		EventsSocket: "/r/pwos/events.sock",
		Lock:         "/r/pwos/kernel.lock",
		Log:          "/r/pwos/kernel.log",
		Blobs:        "/r/pwos/blobs",
	}
	if got := unixsock.PlacesIn("/r/x/../pwos/"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := unixsock.AuthorizedKeys("/c/pwos/config.toml"), "/c/pwos/authorized_keys"; got != want {
		t.Errorf("authorized keys: got %s, want %s", got, want)
	}
}

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

// TestLongestSocketPathWorks: Listen and Dial work with a path of that length.
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

package unixsock_test

import (
	"testing"

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
		{"runtime: ours before all", runtime, map[string]string{"PWOS_RUNTIME_DIR": "/r/", "TMPDIR": "/t", "XDG_RUNTIME_DIR": "/x"}, "/r"},
		{"runtime: a borrowed relative one does not count", runtime, map[string]string{"XDG_RUNTIME_DIR": "x", "TMPDIR": "t"}, "/tmp/pwos-1000"},
		{"runtime: our relative one is left to be refused", runtime, map[string]string{"PWOS_RUNTIME_DIR": "r"}, "r"},
		{"state: nothing set", state, nil, "/home/u/.local/state/pwos"},
		{"state: XDG", state, map[string]string{"XDG_STATE_HOME": "/s"}, "/s/pwos"},
		{"state: relative XDG", state, map[string]string{"XDG_STATE_HOME": "s"}, "/home/u/.local/state/pwos"},
		{"state: ours before XDG", state, map[string]string{"XDG_STATE_HOME": "/s", "PWOS_STATE_DIR": "/mine"}, "/mine"},
		{"config: nothing set", config, nil, "/home/u/.config/pwos/config.toml"},
		{"config: XDG", config, map[string]string{"XDG_CONFIG_HOME": "/c"}, "/c/pwos/config.toml"},
		{"config: relative XDG", config, map[string]string{"XDG_CONFIG_HOME": "c"}, "/home/u/.config/pwos/config.toml"},
		{"config: ours before XDG", config, map[string]string{"XDG_CONFIG_HOME": "/c", "PWOS_CONFIG": "/etc/p.toml"}, "/etc/p.toml"},
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

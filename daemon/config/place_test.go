package config_test

import (
	"strings"
	"testing"
)

// TestPlace: root, mounts, init and origin are resolved, or refused with the setting's line; the origin has the normal form
// of ABI 6.2 before anything is stored under it.
func TestPlace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, origin string }{
		{"", "https://pwos.local/"},
		{"root = '/srv/os'", "/srv/os"},
		{"root = 'https://h.example/os/'", "https://h.example/os/"},
		{"root = '/srv/os'\norigin = 'My-OS 2'", "https://my-os2.local/"},
		{"origin = 'my-os'", "https://my-os.local/"},
		{"origin = 'https://My-OS.local/x?y'", "https://My-OS.local/x?y"},
		{"root = '/srv/os'\ninit = 'boot.md'\n[mounts]\n'os:///lib' = '/srv/lib'\n'os:///net' = 'https://h.example/'", "/srv/os"},
		{"init = 'https://h.example/boot.md'\nmounts = {'os:///lib' = '/l'}", "https://pwos.local/"},
	} {
		cfg := defaults()
		if err := cfg.Parse([]byte(tt.text)); err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if origin, err := cfg.Principal(); err != nil || origin != tt.origin {
			t.Errorf("%q: origin %q, %v, want %q", tt.text, origin, err, tt.origin)
		}
		if _, err := cfg.Space(); err != nil {
			t.Errorf("%q: %v", tt.text, err)
		}
	}
	for text, says := range map[string]string{
		"\nroot = 'srv/os'":                         `line 2: root: "srv/os" must be an absolute path or an https: address`,
		"root = 'http://h.example/'":                "line 1: root: ",
		"origin = '!!'":                             "line 1: origin: ",
		"init = 'boot.md'":                          "line 1: init: ",
		"root = '/r'\ninit = '../boot.md'":          "line 2: init: ",
		"root = '/r'\n[mounts]\n'lib' = 'srv'":      "line 3: mounts.lib: ",
		"[mounts]\n'os:///' = '/srv'":               "line 2: mounts.os:///: ",
		"[mounts]\n'os:///a' = '/a'\n'os/a' = '/b'": "line 2: mounts.os:///a: ",
		"[mounts]\n'os:///a' = 1":                   `line 2: mounts."os:///a": takes a string`,
		"mounts = '/a'":                             "mounts",
		"Root = '/a'":                               "Root: no setting has this name",
	} {
		cfg := defaults()
		err := cfg.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

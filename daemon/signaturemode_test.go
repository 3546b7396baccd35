package daemon_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// Signature mode is on if there are authorized keys in the directory of the configuration, or where a flag or the
// configuration says. An error in them never results in open mode.
func TestWhatSwitchesSignatureModeOn(t *testing.T) {
	t.Parallel()
	put := func(t *testing.T, path, text string) {
		t.Helper()
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dir, key string)
		env     string // % stands for the directory
		args    []string
		mode    string // a scheme, or the daemon's message when it does not start
	}{
		"nothing": {func(*testing.T, string, string) {}, "", nil, "none"},
		"beside the default configuration": {func(t *testing.T, dir, key string) {
			put(t, filepath.Join(dir, ".config", "pwos", "authorized_keys"), key)
		}, "", nil, "signature"},
		"beside XDG's": {func(t *testing.T, dir, key string) {
			put(t, filepath.Join(dir, "x", "pwos", "authorized_keys"), key)
		}, "XDG_CONFIG_HOME=%/x", nil, "signature"},
		"beside the environment's": {func(t *testing.T, dir, key string) {
			put(t, filepath.Join(dir, "e", "authorized_keys"), key)
			put(t, filepath.Join(dir, "e", "pwos.toml"), "")
		}, "PWOS_CONFIG=%/e/pwos.toml", nil, "signature"},
		"beside the flag's": {func(t *testing.T, dir, key string) {
			put(t, filepath.Join(dir, "f", "authorized_keys"), key)
			put(t, filepath.Join(dir, "f", "pwos.toml"), "")
		}, "", []string{"--config", "f/pwos.toml"}, "signature"},
		"beside another configuration": {func(t *testing.T, dir, key string) {
			put(t, filepath.Join(dir, ".config", "pwos", "authorized_keys"), key)
			put(t, filepath.Join(dir, "f", "pwos.toml"), "")
		}, "", []string{"--config", "f/pwos.toml"}, "none"},
		"by flag": {func(t *testing.T, dir, key string) {
			put(t, filepath.Join(dir, "keys"), key)
		}, "", []string{"--authorized-keys", "keys"}, "signature"},
		"by configuration": {func(t *testing.T, dir, key string) {
			put(t, filepath.Join(dir, "keys"), key)
			put(t, filepath.Join(dir, ".config", "pwos", "config.toml"), "authorized_keys = '"+filepath.Join(dir, "keys")+"'\n")
		}, "", nil, "signature"},
		"an empty file": {func(t *testing.T, dir, _ string) {
			put(t, filepath.Join(dir, ".config", "pwos", "authorized_keys"), "")
		}, "", nil, "signature"},
		"a flag to nowhere": {func(*testing.T, string, string) {}, "", []string{"--authorized-keys", "keys"}, "keys"},
		"a link to nowhere": {func(t *testing.T, dir, _ string) {
			testkit.Must(t, os.MkdirAll(filepath.Join(dir, ".config", "pwos"), 0o700))
			testkit.Must(t, os.Symlink("nowhere", filepath.Join(dir, ".config", "pwos", "authorized_keys")))
		}, "", nil, "symbolic link"},
		"a file that others write": {func(t *testing.T, dir, key string) {
			path := filepath.Join(dir, ".config", "pwos", "authorized_keys")
			put(t, path, key)
			testkit.Must(t, os.Chmod(path, 0o620))
		}, "", nil, "writable by group"},
		"no file but a folder": {func(t *testing.T, dir, _ string) {
			testkit.Must(t, os.MkdirAll(filepath.Join(dir, ".config", "pwos", "authorized_keys"), 0o700))
		}, "", nil, "authorized_keys"},
		"a relative path in the configuration": {func(t *testing.T, dir, _ string) {
			put(t, filepath.Join(dir, ".config", "pwos", "config.toml"), "authorized_keys = 'keys'\n")
		}, "", nil, "absolute"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := testkit.Dir(t)
			c.prepare(t, dir, newKey(t).Key().String()+"\n")
			d := spawn(t, dir, func(cmd *exec.Cmd) {
				cmd.Dir = dir
				if c.env != "" {
					cmd.Env = append(cmd.Env, strings.Replace(c.env, "%", dir, 1))
				}
			}, c.args...)
			if c.mode != "none" && c.mode != "signature" {
				if text := d.told(t); !strings.HasPrefix(text, "FAILED ") || !strings.Contains(text, c.mode) {
					t.Errorf("the daemon reported %q, want that it cannot start because of %s", text, c.mode)
				}
				return
			}
			offer := connect(t, d.serving(t).KernelSocket).next()
			if want := `"scheme":"` + c.mode + `"`; !strings.Contains(string(offer.Data), want) {
				t.Errorf("the daemon offers %s, want %s", offer.Data, want)
			}
		})
	}
}

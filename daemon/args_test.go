package daemon_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/version"
)

// Answers to flags such as --help are printed to stdout, and no kernel starts.
func TestTexts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		says []string
	}{
		{[]string{"--help"}, []string{"--runtime-dir", "--state-dir", "--config", "--idle-timeout", "--log-level", "--log-format", "--version"}},
		{[]string{"-h"}, []string{"--runtime-dir"}},
		{[]string{"--version"}, []string{"pwosd " + version.Build()}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			dir := testkit.Dir(t)
			d := spawnWithOutput(t, dir, tt.args...)
			d.wantExit(t, 0)
			for _, want := range tt.says {
				if !strings.Contains(d.stdout.String(), want) {
					t.Errorf("it prints %q, want %q in it", d.stdout, want)
				}
			}
			if d.stderr.String() != "" {
				t.Errorf("on stderr it prints %q", d.stderr)
			}
			if _, err := os.Lstat(d.Dir); !os.IsNotExist(err) {
				t.Errorf("the daemon made its runtime directory: %v", err)
			}
		})
	}
}

type talking struct {
	*process
	stdout *testkit.Buffer
}

func spawnWithOutput(t *testing.T, dir string, args ...string) talking {
	t.Helper()
	out := &testkit.Buffer{}
	return talking{spawn(t, dir, func(c *exec.Cmd) { c.Stdout = out }, args...), out}
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		says string
	}{
		"unknown flag":      {[]string{"--colour=red"}, "--colour"},
		"argument":          {[]string{"start"}, `"start"`},
		"no duration":       {[]string{"--idle-timeout=60"}, "--idle-timeout"},
		"negative duration": {[]string{"--idle-timeout=-1s"}, "--idle-timeout"},
		"no level":          {[]string{"--log-level=loud"}, "--log-level"},
		"no format":         {[]string{"--log-format=xml"}, "--log-format"},
		"empty level":       {[]string{"--log-level="}, "--log-level"},
		"empty directory":   {[]string{"--runtime-dir="}, "--runtime-dir"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := spawnWithOutput(t, testkit.Dir(t), tt.args...)
			d.wantExit(t, 2)
			if says := d.stderr.String(); !strings.Contains(says, tt.says) || strings.Contains(says, "line 1") {
				t.Errorf("its message is %q, want %q in it", says, tt.says)
			}
			if d.stdout.String() != "" {
				t.Errorf("on stdout it prints %q", d.stdout)
			}
		})
	}
}

// A user without a home directory gets no state in the root directory: the daemon asks for a directory, and accepts one
// that is given.
func TestNoHome(t *testing.T) {
	t.Parallel()
	homeless := func(c *exec.Cmd) { c.Env = append(c.Env, "HOME=", "PWOS_STATE_DIR=", "XDG_STATE_HOME=") }
	dir := testkit.Dir(t)
	d := spawn(t, dir, homeless)
	d.wantExit(t, 2)
	if says := d.stderr.String(); !strings.Contains(says, "set HOME, or PWOS_STATE_DIR") {
		t.Errorf("its message is %q", says)
	}
	named := spawn(t, dir, homeless, "--state-dir", filepath.Join(dir, "named")).serving(t)
	testkit.Must(t, named.cmd.Process.Signal(syscall.SIGTERM))
	named.wantExit(t, 0)
}

// A flag takes precedence over the environment, and that over the file.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	const file, env, flag = 1, 2, 4
	for given := range file | env | flag + 1 {
		want := "default"
		for _, from := range []struct {
			bit int
			dir string
		}{{file, "file"}, {env, "env"}, {flag, "flag"}} {
			if given&from.bit != 0 {
				want = from.dir
			}
		}
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			dir := testkit.Dir(t)
			var args []string
			change := func(c *exec.Cmd) {
				c.Env = append(c.Env, "PWOS_RUNTIME_DIR=", "PWOS_STATE_DIR=", "XDG_RUNTIME_DIR="+filepath.Join(dir, "default"), "XDG_STATE_HOME="+filepath.Join(dir, "default"))
				if given&env != 0 {
					c.Env = append(c.Env, "PWOS_RUNTIME_DIR="+filepath.Join(dir, "env", "r"), "PWOS_STATE_DIR="+filepath.Join(dir, "env", "s"))
				}
			}
			if given&file != 0 {
				text := "runtime_dir = '" + filepath.Join(dir, "file", "r") + "'\nstate_dir = '" + filepath.Join(dir, "file", "s") + "'\n"
				testkit.Must(t, os.WriteFile(filepath.Join(dir, "c.toml"), []byte(text), 0o600))
				args = append(args, "--config="+filepath.Join(dir, "c.toml"))
			}
			if given&flag != 0 {
				args = append(args, "--runtime-dir", filepath.Join(dir, "flag", "r"), "--state-dir", filepath.Join(dir, "flag", "s"))
			}
			d := spawn(t, dir, change, args...).serving(t)
			made, err := filepath.Glob(filepath.Join(dir, "*", "*"))
			testkit.Must(t, err)
			for _, path := range made {
				if filepath.Base(filepath.Dir(path)) != want {
					t.Errorf("the daemon made %s, want all files in %s", path, want)
				}
			}
			if len(made) == 0 {
				t.Error("the daemon made no file")
			}
			testkit.Must(t, d.cmd.Process.Signal(syscall.SIGTERM))
			d.wantExit(t, 0)
		})
	}
}

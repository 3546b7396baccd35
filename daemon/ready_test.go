package daemon_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// The starter of a daemon gets one line with the result, and then the pipe is closed.
func TestReadiness(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		before func(t *testing.T, dir string)
		args   []string
		want   string // the first word
		says   string
		code   int
	}{
		{name: "ready", want: "READY"},
		{name: "unsafe directory", want: "FAILED", says: "is open to group or others", code: 1, before: func(t *testing.T, dir string) {
			testkit.Must(t, os.Mkdir(filepath.Join(dir, "r"), 0o700))
			testkit.Must(t, os.Chmod(filepath.Join(dir, "r"), 0o777))
		}},
		{name: "path too long", args: []string{"--runtime-dir=DIR/" + strings.Repeat("x", 120)}, want: "FAILED", says: "PWOS_RUNTIME_DIR", code: 1},
		{name: "wrong flag", args: []string{"--no-such"}, want: "FAILED", says: "no-such", code: 2},
		{name: "wrong value", args: []string{"--idle-timeout=soon"}, want: "FAILED", says: "soon", code: 2},
		{name: "configuration that is not there", args: []string{"--config=/no/such"}, want: "FAILED", says: "/no/such", code: 2},
		{name: "wrong configuration", want: "FAILED", says: "config.toml:2: colour", code: 2, before: func(t *testing.T, dir string) {
			testkit.Must(t, os.MkdirAll(filepath.Join(dir, ".config", "pwos"), 0o700))
			testkit.Must(t, os.WriteFile(filepath.Join(dir, ".config", "pwos", "config.toml"), []byte("\ncolour = 'red'\n"), 0o600))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := testkit.Dir(t)
			if tt.before != nil {
				tt.before(t, dir)
			}
			var args []string
			for _, arg := range tt.args {
				args = append(args, strings.Replace(arg, "DIR", dir, 1))
			}
			d := spawn(t, dir, nil, args...)
			text := d.told(t)
			line, rest, _ := strings.Cut(text, "\n")
			word, reason, _ := strings.Cut(line, " ")
			if word != tt.want || rest != "" || !strings.HasSuffix(text, "\n") || !strings.Contains(reason, tt.says) {
				t.Fatalf("the daemon reported %q, want one line: %s … %s\n%s", text, tt.want, tt.says, d.stderr)
			}
			if tt.code != 0 {
				d.wantExit(t, tt.code)
				if !strings.Contains(d.stderr.String(), tt.says) {
					t.Errorf("its message is %q, want %q in it", d.stderr, tt.says)
				}
				return
			}
			if want := fmt.Sprint(d.cmd.Process.Pid); reason != want {
				t.Errorf("it reports process %s, want %s", reason, want)
			}
			for _, path := range []string{d.KernelSocket, d.EventsSocket} {
				p := dial(t, path)
				p.send(pings(1))
				p.wantPing(0)
			}
			testkit.Must(t, d.cmd.Process.Signal(syscall.SIGTERM))
			d.wantExit(t, 0)
		})
	}
}

// A number of no open file is wrong usage: writing to it could hit any file.
func TestReadinessOnNothing(t *testing.T) {
	t.Parallel()
	for _, fd := range []string{"x", "-1", "2", "77", "99999999999999999999"} {
		t.Run(fd, func(t *testing.T) {
			t.Parallel()
			d := spawn(t, testkit.Dir(t), func(c *exec.Cmd) { c.Env = append(c.Env, "PWOS_READY_FD="+fd) })
			d.wantExit(t, 2)
			if says := d.stderr.String(); !strings.Contains(says, "PWOS_READY_FD") {
				t.Errorf("its message is %q", says)
			}
		})
	}
}

// Without the flag, no line is written.
func TestNobodyWaits(t *testing.T) {
	t.Parallel()
	d := spawn(t, testkit.Dir(t), func(c *exec.Cmd) { c.Env = append(c.Env, "PWOS_READY_FD=") })
	testkit.Eventually(t, "the socket", func() bool {
		_, err := os.Lstat(d.KernelSocket)
		return err == nil
	})
	testkit.Must(t, d.cmd.Process.Signal(syscall.SIGTERM))
	d.wantExit(t, 0)
	if text := d.told(t); text != "" {
		t.Errorf("the daemon wrote %q", text)
	}
}

package daemon_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// logOf returns the log of a daemon that answers and refuses frames.
func logOf(t *testing.T, change func(*exec.Cmd), args ...string) string {
	t.Helper()
	d := spawn(t, testkit.Dir(t), change, args...).serving(t)
	p := dial(t, d.KernelSocket)
	p.send(echoFrame + "top secret\n" + strings.Replace(echoFrame, "message", "massage", 1))
	for range 3 {
		p.next()
	}
	testkit.Must(t, p.nc.Close())
	testkit.Must(t, d.cmd.Process.Signal(syscall.SIGTERM))
	d.wantExit(t, 0)
	return d.stderr.String()
}

func TestLogFormats(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		json bool
	}{
		"auto, not at a terminal": {nil, true},
		"json":                    {[]string{"--log-format=json", "--log-level=debug"}, true},
		"console":                 {[]string{"--log-format=console", "--log-level=debug"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := logOf(t, nil, tt.args...)
			if !strings.Contains(text, "ready") || !strings.Contains(text, "shutting down") {
				t.Errorf("the log says neither when it began nor when it ended:\n%s", text)
			}
			if strings.Contains(text, "secret") {
				t.Errorf("a payload is in the log:\n%s", text)
			}
			if strings.Contains(text, "\x1b") {
				t.Errorf("the log has colours, although it is no terminal:\n%q", text)
			}
			for line := range strings.Lines(text) {
				var entry struct{ Level, Time, Message string }
				err := json.Unmarshal([]byte(line), &entry)
				if tt.json && (err != nil || entry.Level == "" || entry.Time == "" || entry.Message == "") {
					t.Errorf("line %q lacks something (%v)", line, err)
				}
				if !tt.json && err == nil {
					t.Errorf("line %q is JSON", line)
				}
			}
		})
	}
}

func TestLogLevels(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ has, lacks []string }{
		"debug": {has: []string{`"connected"`, `"ready"`}},
		"info":  {has: []string{`"ready"`}, lacks: []string{`"connected"`}},
		"warn":  {lacks: []string{`"ready"`, `"connected"`}},
		"error": {lacks: []string{`"ready"`, `"connected"`}},
	}
	for level, tt := range tests {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			text := logOf(t, nil, "--log-level="+level)
			for _, want := range tt.has {
				if !strings.Contains(text, want) {
					t.Errorf("the log lacks %s:\n%s", want, text)
				}
			}
			for _, other := range tt.lacks {
				if strings.Contains(text, other) {
					t.Errorf("the log has %s:\n%s", other, text)
				}
			}
		})
	}
}

// TestUnreadLog does not read a daemon's log: it still answers, reports later how much of the log was dropped, and ends.
func TestUnreadLog(t *testing.T) {
	t.Parallel()
	for _, read := range []bool{true, false} {
		t.Run(fmt.Sprint("read at the end: ", read), func(t *testing.T) {
			t.Parallel()
			unread, stderr, err := os.Pipe()
			testkit.Must(t, err)
			t.Cleanup(func() { unread.Close() })
			d := spawn(t, testkit.Dir(t), func(c *exec.Cmd) { c.Stderr = stderr }, "--log-level=debug", "--log-format=json").serving(t)
			testkit.Must(t, stderr.Close())
			for range 2000 { // two lines each: more than pipe and queue can have
				p := dial(t, d.KernelSocket)
				p.send(echoFrame)
				p.next()
				testkit.Must(t, p.nc.Close())
			}
			said := make(chan string, 1)
			if read {
				go func() {
					text, _ := io.ReadAll(unread)
					said <- string(text)
				}()
			}
			testkit.Must(t, d.cmd.Process.Signal(syscall.SIGTERM))
			d.wantExit(t, 0)
			if !read {
				return
			}
			text := <-said
			for _, want := range []string{`"ready"`, "lines of the log were dropped"} {
				if !strings.Contains(text, want) {
					t.Errorf("the log lacks %s:\n%.500s", want, text)
				}
			}
			if i := strings.LastIndexByte(strings.TrimSpace(text), '\n'); !json.Valid([]byte(text[i+1:])) {
				t.Errorf("the last line is %q", text[i+1:])
			}
		})
	}
}

package host_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// caller makes a FIFO and returns its path, its reader, and a function that lets the reader see the end.
func caller(t testing.TB) (path string, from *os.File, finish func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "stderr")
	testkit.Must(t, unix.Mkfifo(path, 0o600))
	from, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	testkit.Must(t, err)
	hold, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = from.Close(); _ = hold.Close() })
	return path, from, func() { testkit.Must(t, hold.Close()) }
}

// numbered returns a script that writes lines with numbers to standard error.
func numbered(most int) string { return fmt.Sprintf(`seq -f 'line %%.0f' 1 %d >&2`, most) }

// expectNumbered reads the lines of numbered from a caller's end.
func expectNumbered(t testing.TB, lines *bufio.Scanner, most int) {
	t.Helper()
	for i := 1; i <= most; i++ {
		if want := fmt.Sprintf("line %d", i); !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, %v, want %q", lines.Text(), lines.Err(), want)
		}
	}
}

// TestCallerMissesNothing: a caller reads all that the program writes and in order, however slowly it reads and however short the
// log is.
func TestCallerMissesNothing(t *testing.T) {
	t.Parallel()
	const most = 600_000 // 7 MB
	path, from, finish := caller(t)
	c := shell(t, numbered(most))
	c.Stderr, c.Log = path, host.LogOptions{Path: filepath.Join(t.TempDir(), "log"), MaxBytes: 10_000}
	p := start(t, open(t), c)
	lines := bufio.NewScanner(from)
	expectNumbered(t, lines, 1)
	select {
	case <-p.Done():
		t.Error("the program has not waited for its caller")
	default:
	}
	for i := 2; i <= most; i++ {
		if want := fmt.Sprintf("line %d", i); !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, %v, want %q", lines.Text(), lines.Err(), want)
		}
	}
	wait(t, p)
	finish()
	if lines.Scan() {
		t.Errorf("and %q", lines.Text())
	}
	if files := read(t, c.Log.Path); !strings.HasSuffix(files[0], fmt.Sprintf("line %d\n", most)) || p.LogDropped() != 0 {
		t.Errorf("the log ends with %.100q; %d bytes were dropped", files[0], p.LogDropped())
	}
}

// TestCallerReadsLate: a program ends though its caller does not read; the caller gets what it wrote, then what the next one wrote,
// then a note.
func TestCallerReadsLate(t *testing.T) {
	t.Parallel()
	h := open(t)
	path, from, finish := caller(t)
	const most = 6_900 // 68 KB, more than a pipe holds, and less than a pipe and a read
	for range 2 {
		c := shell(t, numbered(most))
		c.Stderr = path
		p := start(t, h, c)
		wait(t, p)
		p.Note("a note")
	}
	finish()
	lines := bufio.NewScanner(from)
	expectNumbered(t, lines, most)
	if !lines.Scan() || lines.Text() != "a note" {
		t.Errorf("got %q, want a note", lines.Text())
	}
	expectNumbered(t, lines, most)
	if !lines.Scan() || lines.Text() != "a note" || lines.Scan() {
		t.Errorf("got %q, want a note and the end", lines.Text())
	}
}

// TestCallerGone: a program whose caller has gone, before it starts or meanwhile, runs on with its log.
func TestCallerGone(t *testing.T) {
	t.Parallel()
	h := open(t)
	path, from, finish := caller(t)
	c := shell(t, numbered(50_000))
	c.Stderr, c.Log = path, host.LogOptions{Path: filepath.Join(t.TempDir(), "log")}
	p := start(t, h, c)
	_, err := io.ReadFull(from, make([]byte, 10))
	testkit.Must(t, err)
	testkit.Must(t, from.Close())
	finish()
	if exit := wait(t, p); exit.Code != 0 {
		t.Errorf("got %v", exit)
	}
	logged(t, h, c.Log, "echo again >&2")
	c = shell(t, "echo once more >&2")
	c.Stderr, c.Log = path, host.LogOptions{Path: filepath.Join(t.TempDir(), "log")}
	if exit := wait(t, start(t, h, c)); exit.Code != 0 {
		t.Errorf("got %v", exit)
	}
	if files := read(t, c.Log.Path); files[0] != "once more\n" {
		t.Errorf("the log is %q", files)
	}
}

// TestCallerKilled: a program that waits for its caller can be ended, and its caller gets what it had written.
func TestCallerKilled(t *testing.T) {
	t.Parallel()
	path, from, finish := caller(t)
	c := shell(t, `echo ready; exec yes >&2`)
	c.Stderr = path
	p := start(t, open(t), c)
	readLine(t, p, "ready")
	testkit.Must(t, p.Terminate(t.Context(), 0))
	finish()
	if text, err := io.ReadAll(from); err != nil || strings.Trim(string(text), "y\n") != "" {
		t.Errorf("got %.100q, %v", text, err)
	}
}

// TestCallerIsNoFile: only a FIFO is opened.
func TestCallerIsNoFile(t *testing.T) {
	t.Parallel()
	h := open(t)
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	testkit.WriteFile(t, file, "text")
	path, _, _ := caller(t)
	testkit.Must(t, os.Symlink(path, link))
	for _, path := range []string{file, link} {
		c := shell(t, "echo x >&2")
		c.Stderr = path
		if _, err := h.Start(t.Context(), c); err == nil {
			t.Errorf("%s was opened", path)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "text" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

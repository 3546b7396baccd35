package host_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/outlog"
	"github.com/promptware-os/pwos/internal/testkit"
)

// logged runs a script with a log and returns its files, the current one first.
func logged(t *testing.T, h *host.Host, o host.LogOptions, script string) (p *host.Process, files []string) {
	t.Helper()
	c := shell(t, script)
	c.Log = o
	p = start(t, h, c)
	if exit := wait(t, p); exit.Code != 0 {
		t.Fatalf("got %v", exit)
	}
	return p, read(t, o.Path)
}

// read returns the files of a log, which must be private.
func read(t *testing.T, path string) (files []string) {
	t.Helper()
	for i := 0; ; i++ {
		name := path
		if i > 0 {
			name = path + "." + itoa(i)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return files
		}
		info, err := os.Stat(name)
		testkit.Must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		files = append(files, string(text))
	}
}

// TestLog: output is stored line by line over several runs, with partial lines.
func TestLog(t *testing.T) {
	t.Parallel()
	h := open(t)
	path := filepath.Join(t.TempDir(), "log")
	o := host.LogOptions{Path: path}
	logged(t, h, o, `echo one >&2; printf half >&2`)
	testkit.Must(t, os.WriteFile(path, []byte("one\nhalf\ntorn"), 0o644)) // as after a crash of the daemon
	testkit.Must(t, os.Chmod(path, 0o644))
	p, files := logged(t, h, o, `printf 'two\n\0\377\n' >&2`)
	if want := "one\nhalf\ntorn\ntwo\n\x00\xff\n"; len(files) != 1 || files[0] != want {
		t.Errorf("got %q, want %q", files, want)
	}
	if p.LogDropped() != 0 {
		t.Errorf("%d bytes were dropped", p.LogDropped())
	}
}

// TestLogFlood: a flood of output ends in files of bounded size with its last part, cut between lines.
func TestLogFlood(t *testing.T) {
	t.Parallel()
	h := open(t)
	o := host.LogOptions{Path: filepath.Join(t.TempDir(), "log"), MaxBytes: 10_000, Files: 3}
	_, files := logged(t, h, o, `i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done >&2`)
	if len(files) != 3 {
		t.Fatalf("%d files", len(files))
	}
	whole, next := "", int64(-1)
	for i, text := range slices.Backward(files) {
		start, head, err := outlog.Header(strings.NewReader(text))
		output := text[head:]
		if err != nil || start == 0 || next >= 0 && start != next {
			t.Errorf("file %d begins at byte %d, want %d (%v)", i, start, next, err)
		}
		if len(text) > 10_000 || i > 0 && len(text) < 9_000 || !strings.HasPrefix(output, "line ") || !strings.HasSuffix(text, "\n") {
			t.Errorf("file %d: %d bytes, from %.10q", i, len(text), output)
		}
		whole, next = whole+output, start+int64(len(output))
	}
	if total := int64(len("line 0\n")*10 + len("line 10\n")*90 + len("line 100\n")*900 + len("line 1000\n")*9000 + len("line 10000\n")*10000); next != total {
		t.Errorf("the log ends at byte %d of %d", next, total)
	}
	lines := strings.Split(strings.TrimSpace(whole), "\n")
	for i, line := range lines {
		if line != "line "+itoa(20000-len(lines)+i) {
			t.Fatalf("line %d of %d is %q", i, len(lines), line)
		}
	}
}

// TestLogOneLine: an endless line fills the files, and no more.
func TestLogOneLine(t *testing.T) {
	t.Parallel()
	o := host.LogOptions{Path: filepath.Join(t.TempDir(), "log"), MaxBytes: 5000, Files: 1}
	_, files := logged(t, open(t), o, `head -c 100001 /dev/zero >&2`)
	if len(files) != 1 || len(files[0]) > 5000 || !strings.HasSuffix(files[0], "\x00\n") {
		t.Errorf("%d files, the first of %d bytes", len(files), len(files[0]))
	}
}

// TestLogFails: a log that cannot be written does not block the program, and counts the dropped bytes.
func TestLogFails(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "logs")
	testkit.Must(t, os.Mkdir(dir, 0o700))
	c := shell(t, `read x; head -c 1000000 /dev/zero >&2`)
	c.Log = host.LogOptions{Path: filepath.Join(dir, "log"), MaxBytes: 1000}
	p := start(t, open(t), c)
	testkit.Must(t, os.RemoveAll(dir))
	_ = all(t, p)
	if exit := wait(t, p); exit.Code != 0 {
		t.Errorf("got %v", exit)
	}
	if n := p.LogDropped(); n < 990_000 || n > 1_000_000 {
		t.Errorf("%d bytes were dropped", n)
	}
}

// TestLogMissing: when the log can be written again, it says how much is missing, between two lines.
func TestLogMissing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "logs")
	testkit.Must(t, os.Mkdir(dir, 0o700))
	c := shell(t, `printf 'first\nhal' >&2; echo 1; read x; printf 'f\nlost\n%s\npart' "$(head -c 500 /dev/zero | tr '\0' x)" >&2; echo 2; read x; printf 'ly\nlast\n' >&2`)
	c.Log = host.LogOptions{Path: filepath.Join(dir, "log"), MaxBytes: 400}
	p := start(t, open(t), c)
	readLine(t, p, "1")
	testkit.Must(t, os.Rename(dir, dir+".away")) // the next file cannot be made
	_, err := io.WriteString(p.Conn(), "\n")
	testkit.Must(t, err)
	readLine(t, p, "2")
	testkit.Eventually(t, "drop", func() bool { return p.LogDropped() > 500 })
	testkit.Must(t, os.Rename(dir+".away", dir))
	_, err = io.WriteString(p.Conn(), "\n")
	testkit.Must(t, err)
	wait(t, p)
	files := read(t, c.Log.Path)
	whole := ""
	for _, text := range slices.Backward(files) {
		_, head, err := outlog.Header(strings.NewReader(text))
		testkit.Must(t, err)
		whole += text[head:]
	}
	n := p.LogDropped()
	if want := "first\nhalf\nlost\n" + string(outlog.Missing(n, syscall.ENOENT)) + "last\n"; whole != want {
		t.Errorf("got %q, want %q", whole, want)
	}
	if want := int64(len("\npart") + 500 + len("ly\n")); n != want {
		t.Errorf("%d bytes were dropped, want %d", n, want)
	}
}

// TestLogHeld: another process that inherited the program's standard error does not delay its end.
func TestLogHeld(t *testing.T) {
	t.Parallel()
	p := start(t, open(t), shell(t, "echo ready; while :; do sleep 1000; done"))
	readLine(t, p, "ready")
	held, err := os.OpenFile("/proc/"+itoa(p.OSPID())+"/fd/2", os.O_WRONLY, 0)
	testkit.Must(t, err)
	defer held.Close()
	testkit.Must(t, p.Terminate(t.Context(), 0))
}

// TestNoLog: without a log, standard error is read and discarded.
func TestNoLog(t *testing.T) {
	t.Parallel()
	if exit := wait(t, start(t, open(t), shell(t, `head -c 1000000 /dev/zero >&2`))); exit.Code != 0 {
		t.Errorf("got %v", exit)
	}
}

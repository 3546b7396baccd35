package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/host"
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
	for i, text := range files {
		if len(text) > 10_000 || i > 0 && len(text) < 9_000 || !strings.HasPrefix(text, "line ") || !strings.HasSuffix(text, "\n") {
			t.Errorf("file %d: %d bytes, from %.10q", i, len(text), text)
		}
	}
	whole := files[2] + files[1] + files[0]
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

package agents_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience ends a test that waits for what never comes; nothing is measured by it.
const patience = time.Minute

// settings move the clock by hand, end programs quickly and restart them soon.
const settings = `
[clock]
interval = "0s"
[agents]
grace = "300ms"
restart_delay = "10ms"
`

// place is what a daemon leaves behind when it is killed.
type place struct{ dir string }

func newPlace(t testing.TB) *place {
	t.Helper()
	dir, err := os.MkdirTemp("", "pwa") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &place{dir: dir}
	p.configure(t, settings)
	return p
}

func (p *place) configure(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(p.path("config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }
func (p *place) socket() string          { return p.path("r/kernel.sock") }

// process is a daemon that has been started.
type process struct {
	cmd    *exec.Cmd
	ready  *os.File
	stderr logged
}

// start runs a daemon at a new place until the test ends.
func start(t testing.TB) (*place, *process) {
	t.Helper()
	p := newPlace(t)
	return p, p.launch(t)
}

// launch starts a daemon and waits until clients may connect.
func (p *place) launch(t testing.TB) *process {
	t.Helper()
	ready, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d := &process{cmd: exec.Command(self(t), "the-daemon"), ready: ready}
	d.cmd.Env = []string{
		"HOME=" + p.dir, "PATH=" + os.Getenv("PATH"), "PWOS_RUNTIME_DIR=" + p.path("r"), "PWOS_STATE_DIR=" + p.path("s"),
		"PWOS_CONFIG=" + p.path("config.toml"), "PWOS_READY_FD=3",
	}
	d.cmd.ExtraFiles, d.cmd.Stderr = []*os.File{told}, &d.stderr
	err = d.cmd.Start()
	_ = told.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.end(t) })
	if err := d.ready.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(d.ready).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "READY") {
		t.Fatalf("the daemon said %q, %v\n%s", line, err, d.stderr.String())
	}
	return d
}

// kill ends the daemon the hard way.
func (d *process) kill(t testing.TB) {
	t.Helper()
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	if status := d.cmd.ProcessState.String(); status != "signal: killed" {
		t.Errorf("the daemon ended by itself: %s\n%s", status, d.stderr.String())
	}
	_ = d.ready.Close()
}

// logged is the daemon's log, which grows while it runs.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// end ends the daemon in good order, if it runs.
func (d *process) end(t testing.TB) {
	t.Helper()
	if d.cmd.ProcessState != nil {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	hung := time.AfterFunc(patience, func() { _ = d.cmd.Process.Signal(syscall.SIGQUIT) })
	err := d.cmd.Wait()
	hung.Stop()
	_ = d.ready.Close()
	if err != nil {
		t.Errorf("the daemon ended with %v\n%s", err, d.stderr.String())
	}
	if t.Failed() {
		t.Logf("daemon's log:\n%s", d.stderr.String())
	}
}

// self is this program, which is also every program that the tests start.
func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// await waits until a condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it did not come to that", what)
		}
	}
}

// alive reports whether a process of the system is there, and no zombie.
func alive(osPID int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", osPID))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package crash_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pwc")
	if err != nil {
		panic(err)
	}
	pwosd = filepath.Join(dir, "pwosd")
	if out, err := exec.Command("go", "build", "-o", pwosd, "../../cmd/pwosd").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build pwosd: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

var pwosd string // the real daemon

// settings keep the clock still, so that a delta's tick is no matter of time, and leave room for all that is sent.
const settings = `
[clock]
interval = "0s"
[ipc]
mailbox = 1000000
[resources]
gpu = 1000000000
[journal]
snapshot_every = 200
`

// place is what a daemon leaves behind when it is killed.
type place struct{ dir string }

func newPlace(t *testing.T) *place {
	t.Helper()
	dir, err := os.MkdirTemp("", "pwc") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &place{dir: dir}
	if err := os.WriteFile(p.path("config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }
func (p *place) socket() string          { return p.path("r/kernel.sock") }
func (p *place) journal() string         { return p.path("s/journal") }

// process is a pwosd that has been started.
type process struct {
	cmd    *exec.Cmd
	ready  *os.File
	stderr bytes.Buffer
}

func (p *place) launch(t *testing.T) *process {
	t.Helper()
	ready, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d := &process{cmd: exec.Command(pwosd), ready: ready}
	d.cmd.Env = []string{
		"HOME=" + p.dir, "PWOS_RUNTIME_DIR=" + p.path("r"), "PWOS_STATE_DIR=" + p.path("s"),
		"PWOS_CONFIG=" + p.path("config.toml"), "PWOS_READY_FD=3",
	}
	d.cmd.ExtraFiles, d.cmd.Stderr = []*os.File{told}, &d.stderr
	err = d.cmd.Start()
	_ = told.Close()
	if err != nil {
		_ = ready.Close()
		t.Fatal(err)
	}
	return d
}

// await waits until clients may connect.
func (d *process) await(t *testing.T) {
	t.Helper()
	if err := d.ready.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(d.ready).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "READY") {
		d.kill(t)
		t.Fatalf("pwosd said %q, %v\n%s", line, err, d.stderr.String())
	}
}

// kill ends it the hard way, unless it has ended itself: which it must not.
func (d *process) kill(t *testing.T) {
	t.Helper()
	if d.cmd.ProcessState != nil {
		return
	}
	if err := d.cmd.Process.Kill(); err != nil {
		t.Errorf("kill: %v", err)
	}
	_ = d.cmd.Wait() // it says that it was killed
	_ = d.ready.Close()
	if status := d.cmd.ProcessState.String(); status != "signal: killed" {
		t.Errorf("pwosd ended by itself: %s\n%s", status, d.stderr.String())
	}
}

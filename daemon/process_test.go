package daemon_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// process is a daemon as a separate process.
type process struct {
	unixsock.Places
	cmd    *exec.Cmd
	ready  *os.File // what it tells who started it
	stderr *testkit.Buffer
	exited chan struct{}
}

// environment is all that a daemon in dir knows.
func environment(dir string, more ...string) []string {
	return append([]string{
		asProgram + "=1", "GORACE=atexit_sleep_ms=0", "PWOS_READY_FD=3",
		"HOME=" + dir, "PWOS_RUNTIME_DIR=" + filepath.Join(dir, "r"), "PWOS_STATE_DIR=" + filepath.Join(dir, "s"),
	}, more...)
}

// spawn starts a daemon. The test's end kills it if it still runs.
func spawn(t *testing.T, dir string, change func(*exec.Cmd), args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	ready, told, err := os.Pipe()
	testkit.Must(t, err)
	t.Cleanup(func() { ready.Close() })
	p := &process{
		Places: unixsock.PlacesIn(filepath.Join(dir, "r")),
		cmd:    exec.Command(self, args...), ready: ready, stderr: &testkit.Buffer{}, exited: make(chan struct{}),
	}
	p.cmd.Env = environment(dir)
	p.cmd.Stderr = p.stderr
	p.cmd.ExtraFiles = []*os.File{told}
	if change != nil {
		change(p.cmd)
	}
	err = p.cmd.Start()
	testkit.Must(t, errors.Join(err, told.Close()))
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // ProcessState has the result
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended already
		<-p.exited
	})
	return p
}

// told returns everything that the daemon reports to its starter, after which it closes the pipe.
func (p *process) told(t *testing.T) string {
	t.Helper()
	text, err := io.ReadAll(p.ready)
	testkit.Must(t, err)
	return string(text)
}

// serving waits until the daemon is ready.
func (p *process) serving(t *testing.T) *process {
	t.Helper()
	if text := p.told(t); !strings.HasPrefix(text, "READY ") {
		t.Fatalf("the daemon reported %q\n%s", text, p.stderr)
	}
	return p
}

// wantExit waits for the daemon's end and checks how it ended.
func (p *process) wantExit(t *testing.T, code int) {
	t.Helper()
	testkit.Receive(t, p.exited, "the process's end")
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("%v, want exit status %d\n%s", p.cmd.ProcessState, code, p.stderr)
	}
}

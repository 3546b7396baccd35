package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
)

// home is a directory with the configuration of a kernel alpha.
type home struct {
	dir    string
	daemon testkit.Daemon
	line   string // for the members file
}

func newHome(t *testing.T, options string) *home {
	t.Helper()
	p := &home{dir: testkit.Dir(t)}
	testkit.Must(t, os.Mkdir(filepath.Join(p.dir, "s"), 0o700))
	_, p.line = testbus.Key(t, filepath.Join(p.dir, "s"), "alpha", options)
	p.daemon = testkit.Daemon{Command: []string{testkit.Program(t, "pwosd")}, Dir: p.dir}
	return p
}

// configure writes the members file, and the configuration of a kernel whose answers wait for a bus.
func (p *home) configure(t *testing.T, bus, settings string, members ...string) {
	t.Helper()
	testkit.WriteFile(t, filepath.Join(p.dir, "members"), strings.Join(members, "\n")+"\n")
	testkit.WriteFile(t, filepath.Join(p.dir, "config.toml"),
		fmt.Sprintf("[cluster]\nname = \"alpha\"\nbus = %q\nacknowledge = \"quorum\"\nlease = \"2s\"\n%s\n", bus, settings))
}

// pwos runs a verb with the kernel there, without starting one.
func (p *home) pwos(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testkit.Program(t, "pwos"), append([]string{"--no-spawn"}, args...)...)
	cmd.Env = append(os.Environ(), "PWOS_RUNTIME_DIR="+filepath.Join(p.dir, "r"), "PWOS_STATE_DIR="+filepath.Join(p.dir, "s"), "PWOS_CONFIG="+filepath.Join(p.dir, "config.toml"))
	text, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), string(text)
	}
	testkit.Must(t, err)
	return 0, string(text)
}

// refused starts a daemon and waits for its end.
func (p *home) refused(t *testing.T, want string) {
	t.Helper()
	process := p.daemon.Launch(t)
	select {
	case <-process.Ended():
	case <-time.After(testkit.Patience):
		t.Errorf("it runs, want %q", want)
	}
	process.End(t, syscall.SIGKILL)
	if out := process.Output(); !strings.Contains(out, want) {
		t.Errorf("no %q:\n%s", want, tail(out))
	}
}

// A kernel whose answers wait for a bus that does not state that it syncs does not start, unless it is told to. One that reaches such a bus
// later refuses commands.
func TestUnsyncedBus(t *testing.T) {
	t.Parallel()
	p := newHome(t, "")
	url := testbus.StartNATS(t, "127.0.0.1:0", p.line)
	p.configure(t, url, "", p.line)
	p.refused(t, "answers cannot wait for this bus")
	if code, out := p.pwos(t, "cluster", "check"); code != 1 || !strings.Contains(out, `{"promise":"sync","state":"unknown","quorum":true,`) {
		t.Errorf("exit %d: %s", code, out)
	}
	p.daemon.Command = append(p.daemon.Command, "--accept-unsynced")
	process := p.daemon.Launch(t)
	process.Await(t)
	if code, out := p.pwos(t, "mem", "set", "a", "1"); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	process.End(t, syscall.SIGTERM)
	p.configure(t, url, "accept_unsynced = true", p.line)
	if code, out := p.pwos(t, "cluster", "check"); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
}

// The same for a bus that is reached after the start.
func TestUnsyncedBusLater(t *testing.T) {
	t.Parallel()
	p := newHome(t, "")
	at := freePort(t, "127.77.3.1")
	p.configure(t, "nats://"+at, "", p.line)
	process := p.daemon.Launch(t)
	process.Await(t)
	testbus.StartNATS(t, at, p.line)
	testkit.Eventually(t, "the status says why", func() bool {
		_, out := p.pwos(t, "cluster", "status")
		return strings.Contains(out, "answers cannot wait for this bus")
	})
	if code, out := p.pwos(t, "mem", "set", "a", "1"); code == 0 {
		t.Errorf("a command is answered: %s", out)
	}
	process.End(t, syscall.SIGTERM)
}

// With standby = true on both hosts, the one whose line is the kernel's own begins, and the other stands by. If both lines have standby,
// neither starts, and each says why.
func TestBothStandBy(t *testing.T) {
	t.Parallel()
	first, second := newHome(t, ""), newHome(t, "standby")
	bus := testbus.Start(t, first.line, second.line)
	var running []*testkit.Process
	for _, p := range []*home{second, first} {
		p.configure(t, bus.URL(), "standby = true", first.line, second.line)
		running = append(running, p.daemon.Launch(t))
	}
	running[1].Await(t)
	if code, out := first.pwos(t, "mem", "set", "a", "1"); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	testkit.Eventually(t, "the other stands by", func() bool { return strings.Contains(running[0].Output(), "standing by") })
	running[1].End(t, syscall.SIGTERM)
	running[0].Await(t) // it takes over
	if code, out := second.pwos(t, "mem", "get", "a"); code != 0 || strings.TrimSpace(out) != "1" {
		t.Errorf("exit %d: %s", code, out)
	}
	running[0].End(t, syscall.SIGTERM)

	third, fourth := newHome(t, "standby"), newHome(t, "standby")
	empty := testbus.Start(t, third.line, fourth.line)
	for _, p := range []*home{third, fourth} {
		p.configure(t, empty.URL(), "standby = true", third.line, fourth.line)
		p.refused(t, "no host may begin its record")
	}
}

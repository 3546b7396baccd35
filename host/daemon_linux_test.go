package host_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// hosting is a daemon as a separate process, with two agents that have orphaned descendants.
type hosting struct {
	cmd      *exec.Cmd
	instance string
	agents   []int
	guard    int
	orphan   int
}

// startDaemon starts a hosting. Without PID namespaces (shared), only marks find orphans.
func startDaemon(t *testing.T, shared bool) *hosting {
	t.Helper()
	self, err := os.Executable()
	testkit.Must(t, err)
	dir := t.TempDir()
	d := &hosting{instance: dir, cmd: exec.Command(self, "t-daemon", dir, dir, strconv.FormatBool(shared))}
	out, err := d.cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, d.cmd.Start())
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		// If the test fails, processes may be left.
		h, err := host.New(host.Options{Instance: dir})
		testkit.Must(t, err)
		h.Close(context.Background(), 0)
	})
	lines := bufio.NewScanner(out)
	for len(d.agents) < 2 {
		if !lines.Scan() {
			t.Fatal("the daemon ended")
		}
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(lines.Text())
		}
		d.agents = append(d.agents, pid)
	}
	d.orphan = readPID(t, d.agents[0], filepath.Join(dir, "orphan-stay"))
	readPID(t, d.agents[1], filepath.Join(dir, "orphan-cling.clings"))
	d.guard = guardOf(d.cmd.Process.Pid)
	if d.guard == 0 {
		t.Fatal("the daemon has no guard")
	}
	return d
}

// guardOf returns the guard among a process's children.
func guardOf(parent int) int {
	for _, pid := range numbers() {
		text, err := os.ReadFile("/proc/" + itoa(pid) + "/cmdline")
		if _, p := stat(pid); err == nil && p == parent && strings.HasPrefix(string(text), "pwos-host-guard\x00") {
			return pid
		}
	}
	return 0
}

// gone waits until none of the processes is left.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		testkit.Eventually(t, "the end of process "+itoa(pid), func() bool { return !alive(pid) })
	}
}

// TestNoShim: a hosting program that does not call Shim gets an error, instead of starting itself forever.
func TestNoShim(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	testkit.Must(t, err)
	cmd := exec.Command(self, "t-daemon", "", t.TempDir())
	// A guard has a different environment, so the variable only affects the helper.
	cmd.Args[1] = "pwos-host-guard"
	cmd.Env = append(os.Environ(), "PWOS_TEST_NO_SHIM=1", "PWOS_HOST_CHILD=1")
	out, err := cmd.Output()
	if err == nil || !strings.Contains(string(out), "does not call host.Shim") {
		t.Errorf("got %q, %v", out, err)
	}
}

// TestDaemonKilled: no agent, and no orphan that it started, outlives a daemon that is killed.
func TestDaemonKilled(t *testing.T) {
	t.Parallel()
	for i := range 5 {
		t.Run(itoa(i), func(t *testing.T) {
			d := startDaemon(t, i%2 == 0)
			testkit.Must(t, d.cmd.Process.Kill())
			gone(t, append(d.agents, d.orphan, d.guard)...)
		})
	}
}

// TestGuardIgnores: signals that a terminal or a service manager sends to all processes do not end the guard before the
// daemon.
func TestGuardIgnores(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, true)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		testkit.Must(t, syscall.Kill(d.guard, sig))
	}
	testkit.Must(t, d.cmd.Process.Kill())
	gone(t, append(d.agents, d.orphan, d.guard)...)
}

// TestGuardKilledToo: if daemon and guard are killed together, an agent dies with the daemon, and the next start of the
// same kernel kills its orphans, and processes that did not die. A start of another kernel does not. What is left executes nothing
// until then, since nobody is told of it.
func TestGuardKilledToo(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, true)
	testkit.Must(t, d.cmd.Process.Signal(syscall.SIGSTOP)) // so that it cannot start another guard
	testkit.Eventually(t, "the stop of every thread", func() bool { return stopped(d.cmd.Process.Pid) })
	testkit.Must(t, syscall.Kill(d.guard, syscall.SIGKILL))
	testkit.Must(t, d.cmd.Process.Kill())
	gone(t, d.agents[0])
	other := open(t) // another kernel
	if has := host.MeansOf(other); has.Filter && has.Notify {
		clings := filepath.Join(d.instance, "orphan-cling")
		testkit.Must(t, os.WriteFile(clings+".execute", nil, 0o600))
		testkit.Eventually(t, "an exec", func() bool { _, err := os.Lstat(clings + ".executed"); return err == nil })
		if got, want := testkit.ReadFile(t, clings+".executed"), "fork/exec /bin/true: "+syscall.ENOSYS.Error(); got != want {
			t.Errorf("an exec without a daemon: %s, want %s", got, want)
		}
	}
	if !alive(d.orphan) || !alive(d.agents[1]) {
		t.Fatal("the processes ended by themselves: the test shows nothing")
	}
	h, err := host.New(host.Options{Instance: d.instance})
	testkit.Must(t, err)
	defer h.Close(context.Background(), 0)
	if alive(d.orphan) || alive(d.agents[1]) {
		t.Error("the next start has not killed the processes")
	}
}

// TestGuardReplaced: a killed guard is replaced, and the new one works.
func TestGuardReplaced(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, true)
	testkit.Must(t, syscall.Kill(d.guard, syscall.SIGKILL))
	next := 0
	testkit.Eventually(t, "another guard", func() bool {
		next = guardOf(d.cmd.Process.Pid)
		return next != 0 && next != d.guard
	})
	testkit.Must(t, d.cmd.Process.Kill())
	gone(t, append(d.agents, d.orphan, next)...)
}

package host_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// ownProcesses skips the test if programs do not have processes of their own here.
func ownProcesses(t *testing.T, h *host.Host) {
	t.Helper()
	if !host.MeansOf(h).PIDs {
		t.Skip("this machine has no PID namespaces in which /proc can be mounted")
	}
}

// TestProcesses: a program sees its own processes only. Of its init it sees neither what that was told nor its memory, and it cannot
// end it. What /proc says about the machine stays.
func TestProcesses(t *testing.T) {
	t.Parallel()
	h := open(t)
	ownProcesses(t, h)
	p := start(t, h, shell(t, `
		set -- /proc/[0-9]*
		echo $# $PPID $1
		tr -d '\0' </proc/1/cmdline; echo
		for file in environ maps mem root cwd exe fd/0; do head -c 1 /proc/1/$file >/dev/null 2>&1 && echo $file; done
		kill -KILL 1; kill -TERM 1; kill -INT 1; kill -STOP 1; kill 1
		echo x >/proc/self/oom_score_adj || echo read-only
		read line </proc/cpuinfo && test -d /proc/sys/kernel && echo machine`))
	want := "2 1 /proc/1\npwos-init\nread-only\nmachine\n"
	if got := all(t, p); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if exit := wait(t, p); exit.Code != 0 {
		t.Errorf("the program ended as %v", exit)
	}
}

// TestEndsAlike: how a program ends is told as it is, with and without an init in a namespace of its own, and without a sandbox.
func TestEndsAlike(t *testing.T) {
	t.Parallel()
	own, shared := open(t), openShared(t)
	for name, try := range map[string]struct {
		host *host.Host
		mode host.Mode
	}{"own processes": {own, host.SandboxDefault}, "shared": {shared, host.SandboxDefault}, "no sandbox": {own, host.SandboxOff}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for script, want := range map[string]struct {
				code   int
				signal syscall.Signal
			}{
				"exit 0": {}, "exit 1": {code: 1}, "exit 127": {code: 127}, "exit 255": {code: 255},
				"kill -KILL $$": {-1, syscall.SIGKILL}, "kill -TERM $$": {-1, syscall.SIGTERM}, "kill -ABRT $$": {-1, syscall.SIGABRT},
				"kill -USR1 $$": {-1, syscall.SIGUSR1}, "kill -HUP 0": {-1, syscall.SIGHUP},
				"setsid sh -c 'exit 1'; exit 3": {code: 3},
			} {
				c := shell(t, script)
				c.Sandbox = try.mode
				p := start(t, try.host, c)
				if exit := wait(t, p); exit.Code != want.code || exit.Signal != want.signal {
					t.Errorf("%s: got %v, want %v", script, exit, want)
				}
			}
		})
	}
}

// TestKillsAll: a program that kills all processes that it can see kills its own only.
func TestKillsAll(t *testing.T) {
	t.Parallel()
	h := open(t)
	ownProcesses(t, h)
	other := start(t, h, shell(t, "read x; echo lives"))
	p := start(t, h, shell(t, "setsid sleep 1000 & kill -KILL -1; exit 1"))
	wait(t, p)
	if got := all(t, other); got != "lives\n" {
		t.Errorf("another program said %q", got)
	}
}

// TestReaped: orphans are reaped while the program runs.
func TestReaped(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, h := range []*host.Host{h, openShared(t)} {
		p := start(t, h, shell(t, `
			for i in 1 2 3 4 5; do (setsid sh -c "exec true" &); done
			for i in 1 2 3 4 5 6 7 8 9; do
				sleep 0.2
				for stat in /proc/[0-9]*/stat; do cut -d' ' -f3,4 $stat 2>/dev/null; done | grep -q "^Z $PPID\$" || { echo none; exit; }
			done`))
		if got := all(t, p); got != "none\n" {
			t.Errorf("zombies are left: %q", got)
		}
	}
}

// TestInitKilled: when the init of a program dies, the agent ends as a whole, also a program that does not end with its parent.
func TestInitKilled(t *testing.T) {
	t.Parallel()
	for _, h := range []*host.Host{open(t), openShared(t)} {
		c := helper(t, "t-orphan", "orphan", "cling")
		p := start(t, h, c)
		pids := []int{p.OSPID(), readPID(t, p.OSPID(), filepath.Join(c.Dir, "orphan")), readPID(t, p.OSPID(), filepath.Join(c.Dir, "orphan.clings"))}
		_, init := stat(p.OSPID())
		testkit.Must(t, syscall.Kill(init, syscall.SIGKILL))
		if exit := wait(t, p); exit.Signal != syscall.SIGKILL {
			t.Errorf("got %v", exit)
		}
		for _, pid := range pids {
			if alive(pid) {
				t.Errorf("process %d is left", pid)
			}
		}
	}
}

// TestInitIsNotCounted: the bound on processes is one of the program's.
func TestInitIsNotCounted(t *testing.T) {
	t.Parallel()
	c := shell(t, "exec sleep 1")
	c.Limits.Processes = 1
	if exit := wait(t, start(t, open(t), c)); exit.Code != 0 || exit.Left != 0 {
		t.Errorf("got %v", exit)
	}
}

// TestLeavesItsGroup: a program that has left its process group is told and killed like any other.
func TestLeavesItsGroup(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, end := range map[string]func(*host.Process){
		"told":   func(p *host.Process) { testkit.Must(t, p.Terminate(t.Context(), time.Minute)) },
		"killed": func(p *host.Process) { p.Kill() },
	} {
		p := start(t, h, helper(t, "t-leaves"))
		readLine(t, p, "on")
		end(p)
		if exit := wait(t, p); name == "told" && exit.Code != 5 || name == "killed" && exit.Signal != syscall.SIGKILL {
			t.Errorf("%s: got %v", name, exit)
		}
	}
}

// traced makes its parent its tracer, which the system then stops it for.
func traced([]string) int {
	runtime.LockOSThread()
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PTRACE, syscall.PTRACE_TRACEME, 0, 0); errno != 0 {
		fmt.Println("it cannot be traced:", errno)
	}
	fmt.Println(syscall.Exec("/bin/sh", []string{"sh", "-c", "kill -KILL $$"}, nil))
	return 1
}

// TestTraced: a program that is stopped because its init is its tracer has not ended.
func TestTraced(t *testing.T) {
	t.Parallel()
	p := start(t, open(t), helper(t, "t-traced"))
	testkit.Eventually(t, "the program is stopped, or has ended", func() bool {
		state, _ := stat(p.OSPID())
		return state != 'R' && state != 'S' && state != 'D'
	})
	p.Kill()
	if exit := wait(t, p); exit.Signal != syscall.SIGKILL {
		t.Errorf("got %v", exit)
	}
}

// TestEndsWhileStopped: the end of a program that is stopped and continued all the time is told. Its init must not take it for a stop,
// which the tries provoke.
func TestEndsWhileStopped(t *testing.T) {
	t.Parallel()
	h := open(t)
	for range 10 {
		p := start(t, h, shell(t, `
			for i in 1 2; do setsid sh -c "while kill -STOP $$ && kill -CONT $$; do :; done" & done
			setsid sh -c "sleep 0.02; kill -STOP $$; kill -KILL $$" &
			while :; do :; done`))
		if exit := wait(t, p); exit.Signal != syscall.SIGKILL {
			t.Errorf("got %v", exit)
		}
	}
}

// TestStopsItsInit: a program that stops its init, which it can where both are in one PID namespace, is killed like any other.
func TestStopsItsInit(t *testing.T) {
	t.Parallel()
	for _, then := range []string{"exit 3", "exec sleep 1000"} {
		c := shell(t, "while ! test -e go; do sleep 0.01; done; kill -STOP $PPID; echo on; "+then)
		p := start(t, openShared(t), c)
		testkit.Must(t, os.WriteFile(filepath.Join(c.Dir, "go"), nil, 0o600)) // an init that has not let go of the start yet would keep it back
		readLine(t, p, "on")
		p.Kill()
		wait(t, p)
	}
}

// TestToldOnce: TERM arrives once.
func TestToldOnce(t *testing.T) {
	t.Parallel()
	p := start(t, open(t), shell(t, `trap 'echo told' TERM; echo on; for i in 1 2 3 4 5 6 7 8; do sleep 0.05; done`))
	readLine(t, p, "on")
	testkit.Must(t, p.Terminate(t.Context(), time.Minute))
	if got := all(t, p); strings.Count(got, "told") != 1 {
		t.Errorf("got %q", got)
	}
}

// TestStopTold: the caller learns that its program has stopped, by a key or by itself, and continues it. It does not learn that the
// kernel has stopped it.
func TestStopTold(t *testing.T) {
	t.Parallel()
	told := make(chan syscall.Signal, 8)
	send1 := make(chan syscall.Signal)
	fds := descriptors(null(t), null(t), null(t))
	c := shell(t, `for sig in TSTP STOP TTIN TTOU; do kill -$sig $$; echo $sig >>stops; done; echo done >ready; read x <go`)
	testkit.Must(t, syscall.Mkfifo(c.Dir+"/go", 0o600))
	c.Stdio = calls(t, func(conn *net.UnixConn) {
		defer conn.Close()
		send(conn, fds)
		go func() {
			for sig := range send1 {
				_, _ = conn.Write([]byte{byte(sig)})
			}
		}()
		for word := make([]byte, 1); ; {
			if n, err := conn.Read(word); n == 0 || err != nil {
				break
			}
			told <- syscall.Signal(word[0])
		}
		close(told)
	})
	p := start(t, open(t), c)
	for range 4 {
		if sig := <-told; sig != syscall.SIGTSTP {
			t.Errorf("told %v", sig)
		}
		send1 <- syscall.SIGCONT
	}
	testkit.Eventually(t, "the program is ready", func() bool { _, err := os.Stat(c.Dir + "/ready"); return err == nil })
	p.Want(true)
	p.Halt()
	testkit.Eventually(t, "the program is stopped", func() bool { return stopped(p.OSPID()) })
	p.Want(false)
	p.Halt()
	testkit.Must(t, os.WriteFile(c.Dir+"/go", nil, 0o600))
	if exit := wait(t, p); exit.Code != 1 { // of read, at the end of its input
		t.Errorf("got %v", exit)
	}
	for sig := range told {
		t.Errorf("told %v of what the kernel did", sig)
	}
	close(send1)
}

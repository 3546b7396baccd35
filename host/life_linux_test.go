package host_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestEnds: the kinds of a program's end are distinguished.
func TestEnds(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, c := range map[string]struct {
		script string
		code   int
		signal syscall.Signal
		reason host.Reason
		cause  host.Cause
	}{
		"at once":     {"exit 0", 0, 0, host.ReasonExited, host.CauseFinished},
		"with a code": {"exit 3", 3, 0, host.ReasonExited, host.CauseFailed},
		"by a signal": {"kill -SEGV $$", -1, syscall.SIGSEGV, host.ReasonSignalled, host.CauseFailed},
		"by kill":     {"kill -KILL $$", -1, syscall.SIGKILL, host.ReasonSignalled, host.CauseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exit := wait(t, start(t, h, shell(t, c.script)))
			if exit.Code != c.code || exit.Signal != c.signal || exit.Reason != c.reason || exit.Cause() != c.cause {
				t.Errorf("got %+v (%v), want %+v", exit, exit, c)
			}
			if exit.Ran <= 0 || exit.MaxRSS <= 0 {
				t.Errorf("usage is missing: %+v", exit)
			}
		})
	}
}

// TestTerminate: TERM ends a program that handles it, and the program may complete its own shutdown.
func TestTerminate(t *testing.T) {
	t.Parallel()
	h := open(t)
	p := start(t, h, shell(t, `trap 'echo bye; exit 5' TERM; echo ready; while :; do read x; done`))
	lines := bufio.NewScanner(p.Conn())
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("got %q", lines.Text())
	}
	// Two concurrent calls: each returns when the program has ended.
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := p.Terminate(t.Context(), bound); err != nil {
				t.Error(err)
			}
			if alive(p.OSPID()) {
				t.Error("still alive")
			}
		})
	}
	all.Wait()
	testkit.Must(t, p.Terminate(t.Context(), 0)) // a second time
	if exit := wait(t, p); exit.Code != 5 || exit.Reason != host.ReasonOrdered {
		t.Errorf("got %+v", exit)
	}
	if !lines.Scan() || lines.Text() != "bye" || lines.Scan() {
		t.Errorf("the program's last line is %q", lines.Text())
	}
}

// TestTerminateStubborn: a program that ignores TERM, and its child that does, are killed after the grace.
func TestTerminateStubborn(t *testing.T) {
	t.Parallel()
	h := open(t)
	p := start(t, h, shell(t, `trap '' TERM; (echo ready; sleep 1000) & wait; sleep 1000`))
	readLine(t, p, "ready")
	began := time.Now()
	const grace = 50 * time.Millisecond
	testkit.Must(t, p.Terminate(t.Context(), grace))
	if exit := wait(t, p); exit.Signal != syscall.SIGKILL || exit.Reason != host.ReasonOrdered || time.Since(began) < grace {
		t.Errorf("got %+v", exit)
	}
}

// TestTerminateStopped: a stopped program is terminated like others.
func TestTerminateStopped(t *testing.T) {
	t.Parallel()
	h := open(t)
	p := start(t, h, shell(t, `echo ready; exec sleep 1000`))
	readLine(t, p, "ready")
	p.Signal(syscall.SIGSTOP)
	testkit.Eventually(t, "stopped", func() bool { s, _ := stat(p.OSPID()); return s == 'T' })
	testkit.Must(t, p.Terminate(t.Context(), bound))
	if exit := wait(t, p); exit.Signal != syscall.SIGTERM {
		t.Errorf("got %+v", exit)
	}
}

// TestTerminateContext: Terminate returns with its context, and the termination continues.
func TestTerminateContext(t *testing.T) {
	t.Parallel()
	h := open(t)
	p := start(t, h, shell(t, `trap '' TERM; echo ready; while :; do sleep 1000; done`))
	readLine(t, p, "ready")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Terminate(ctx, bound); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	p.Kill()
	if exit := wait(t, p); exit.Reason != host.ReasonOrdered {
		t.Errorf("got %+v", exit)
	}
}

// TestOrphans: processes that fork twice into new sessions, and outlive their parents, end with the agent.
func TestOrphans(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, how := range []string{"stay", "go"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := helper(t, "t-orphan", "orphan", how)
			p := start(t, h, c)
			pid := 0
			if how == "stay" {
				pid = readPID(t, p.OSPID(), filepath.Join(c.Dir, "orphan"))
				if _, parent := stat(pid); parent == p.OSPID() {
					t.Fatalf("the parent of process %d has not ended", pid)
				}
				if !p.Has(pid) || !p.Has(p.OSPID()) || p.Has(os.Getpid()) {
					t.Error("Has does not report exactly the agent's processes")
				}
				testkit.Must(t, p.Terminate(t.Context(), 0))
			}
			exit := wait(t, p)
			for _, n := range numbers() {
				if p.Has(n) && alive(n) {
					t.Errorf("process %d still runs", n)
				}
			}
			if how == "stay" && (alive(pid) || exit.Left < 1) {
				t.Errorf("orphan %d: alive %v, %+v", pid, alive(pid), exit)
			}
		})
	}
}

// TestOrphansHaveGrace: on Terminate, descendants that left the group get TERM too, and have the rest of the grace.
func TestOrphansHaveGrace(t *testing.T) {
	t.Parallel()
	h := open(t)
	c := shell(t, `setsid sh -c 'trap "sleep 0.1; echo done >late; exit" TERM; echo $$ >pid; while :; do sleep 0.05; done' & 
		trap 'exit 0' TERM; while :; do sleep 0.05; done`)
	p := start(t, h, c)
	pid := readPID(t, p.OSPID(), filepath.Join(c.Dir, "pid"))
	testkit.Must(t, p.Terminate(t.Context(), bound))
	if text, err := os.ReadFile(filepath.Join(c.Dir, "late")); err != nil || string(text) != "done\n" || alive(pid) {
		t.Errorf("got %q, %v, alive %v", text, err, alive(pid))
	}
}

// TestFirstThreadEnds: a process whose first thread has ended looks like a zombie, and is killed like any other.
func TestFirstThreadEnds(t *testing.T) {
	t.Parallel()
	h := open(t)
	c := helper(t, "t-orphan-as", "lonely")
	c.Read = c.Argv[:1]
	c.Argv = []string{"/bin/sh", "-c", `setsid "$0" t-lonely pid & while :; do sleep 1000; done`, c.Argv[0]}
	p := start(t, h, c)
	pid := readPID(t, p.OSPID(), filepath.Join(c.Dir, "pid"))
	testkit.Eventually(t, "the end of the first thread", func() bool { s, _ := stat(pid); return s == 'Z' })
	testkit.Must(t, p.Terminate(t.Context(), 0))
	if tasks, err := os.ReadDir("/proc/" + itoa(pid) + "/task"); err == nil && len(tasks) > 1 {
		t.Errorf("%d threads are left", len(tasks))
	}
}

// TestStarterEnds: a program outlives the thread that requested it, although the parent-death signal depends on a thread.
func TestStarterEnds(t *testing.T) {
	t.Parallel()
	h := open(t)
	c := shell(t, "echo ready; read line; echo $line")
	started := make(chan *host.Process)
	tid := make(chan int, 1)
	go func() {
		runtime.LockOSThread() // it is never unlocked, so the thread ends here
		p, err := h.Start(context.Background(), c)
		if err != nil {
			t.Error(err)
		}
		tid <- syscall.Gettid()
		started <- p
	}()
	p := <-started
	defer p.Conn().Close()
	thread := "/proc/self/task/" + itoa(<-tid)
	testkit.Eventually(t, "the end of the thread", func() bool { _, err := os.Stat(thread); return err != nil })
	readLine(t, p, "ready")
	if _, err := io.WriteString(p.Conn(), "alive\n"); err != nil {
		t.Error(err)
	}
	readLine(t, p, "alive")
}

// TestFlood: many concurrent programs each end as they should. A shell blocks signals while it starts a process, which then gets no TERM and
// lives until the grace ends, so these have started theirs before they answer.
func TestFlood(t *testing.T) {
	t.Parallel()
	h := open(t)
	var all sync.WaitGroup
	for i := range testkit.Rounds(100, 200, 200) {
		all.Go(func() {
			p, err := h.Start(t.Context(), shell(t, `sleep 1000 1>&- & read line; echo "$line"; exec 1>&-; wait`))
			if err != nil {
				t.Error(err)
				return
			}
			defer p.Conn().Close()
			if _, err := io.WriteString(p.Conn(), itoa(i)+"\n"); err != nil {
				t.Error(err)
			}
			text, err := io.ReadAll(p.Conn())
			if err != nil || string(text) != itoa(i)+"\n" {
				t.Errorf("agent %d said %q, %v", i, text, err)
			}
			if err := p.Terminate(t.Context(), bound); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if left := h.Processes(); len(left) != 0 {
		t.Errorf("%d are left", len(left))
	}
}

// TestClose: after Close no process runs, and none can start.
func TestClose(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Options{})
	testkit.Must(t, err)
	var pids []int
	for range 5 {
		p := start(t, h, shell(t, `trap '' TERM; echo ready; while :; do sleep 1000; done`))
		readLine(t, p, "ready")
		pids = append(pids, p.OSPID())
	}
	var twice sync.WaitGroup
	for range 2 {
		twice.Go(func() { h.Close(t.Context(), 20*time.Millisecond) })
	}
	twice.Wait()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
	if _, err := h.Start(t.Context(), shell(t, "exit 0")); !errors.Is(err, host.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// readLine waits for a line.
func readLine(t testing.TB, p *host.Process, want string) {
	t.Helper()
	testkit.Must(t, p.Conn().SetReadDeadline(time.Now().Add(bound)))
	var got []byte
	one := make([]byte, 1)
	for !strings.HasSuffix(string(got), "\n") {
		_, err := io.ReadFull(p.Conn(), one)
		if err != nil {
			t.Fatalf("read after %q: %v", got, err)
		}
		got = append(got, one[0])
	}
	if string(got) != want+"\n" {
		t.Fatalf("got %q, want %q", got, want)
	}
}

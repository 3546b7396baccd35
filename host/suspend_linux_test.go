package host_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// stateOf returns the letter of a process's state: T if it is stopped.
func stateOf(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	testkit.Must(t, err)
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}

// allStopped reports whether all processes are stopped.
func allStopped(t *testing.T, pids []int) bool {
	t.Helper()
	return !slices.ContainsFunc(pids, func(pid int) bool { return stateOf(t, pid) != "T" })
}

// suspend suspends an agent until its processes are stopped and while returns true. It returns a channel that is closed
// when they continue. On a busy machine a suspension may end earlier; the next lasts twice as long.
func suspend(t *testing.T, p *host.Process, pids []int, while func() bool) (over chan struct{}) {
	t.Helper()
	for range 6 {
		over = make(chan struct{})
		go func() {
			defer close(over)
			p.Suspend()
		}()
		for on := true; on; {
			if allStopped(t, pids) && while() {
				return over
			}
			select {
			case <-over:
				on = false
			case <-time.After(time.Millisecond):
			}
		}
	}
	t.Fatalf("processes %v are not stopped", pids)
	return nil
}

// TestSuspend: the processes of a suspended agent are stopped, also those in other sessions. They continue by themselves,
// and end normally if the agent is told to end meanwhile.
func TestSuspend(t *testing.T) {
	t.Parallel()
	h := open(t)
	// Neither starts anything more: a shell whose child is stopped before its execve waits for that, and is not stopped
	// itself.
	p := start(t, h, shell(t, `setsid sh -c 'echo $$; exec sleep 1000' & trap 'exit 5' TERM; echo $$; wait`))
	lines := bufio.NewScanner(p.Conn())
	var pids []int
	for range 2 {
		if !lines.Scan() {
			t.Fatalf("no output: %v", lines.Err())
		}
		pid, err := strconv.Atoi(lines.Text())
		testkit.Must(t, err)
		pids = append(pids, testkit.Outside(t, p.OSPID(), pid))
	}
	<-suspend(t, p, pids, func() bool {
		p.Suspend() // it returns immediately
		return allStopped(t, pids)
	})
	testkit.Eventually(t, "the processes continue", func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { return stateOf(t, pid) == "T" })
	})

	over := suspend(t, p, pids, func() bool { return true })
	testkit.Must(t, p.Terminate(t.Context(), time.Minute))
	<-over
	if exit := wait(t, p); exit.Code != 5 {
		t.Errorf("the program ended as %v", exit)
	}
}

// TestPeerWithoutDescriptors: without a descriptor the owner of a peer is unknown. The peer then counts neither as ended
// nor as the operator, and a later call succeeds.
func TestPeerWithoutDescriptors(t *testing.T) {
	t.Parallel()
	const role = "HOST_TEST_EXHAUSTED"
	if os.Getenv(role) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), role+"=1", "GORACE=atexit_sleep_ms=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	h := open(t)
	l := listen(t)
	c := helper(t, "t-connect", l.Addr().String())
	c.Sandbox = host.SandboxOff // a sandbox would hide the socket
	p := start(t, h, c)
	conn, err := l.AcceptUnix()
	testkit.Must(t, err)
	defer conn.Close()
	raw, err := conn.SyscallConn()
	testkit.Must(t, err)
	testkit.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 100, Max: 100}))
	var taken []*os.File
	for err == nil {
		var file *os.File
		if file, err = os.Open(os.DevNull); err == nil {
			taken = append(taken, file)
		}
	}
	for left := range 2 { // one descriptor to find the process, and one to check it
		owner, err := h.Peer(raw)
		if owner != nil || !errors.Is(err, host.ErrExhausted) || !errors.Is(err, syscall.EMFILE) || errors.Is(err, host.ErrGone) {
			t.Errorf("with %d free descriptors the owner is %v, %v", left, owner, err)
		}
		testkit.Must(t, taken[left].Close())
	}
	for _, file := range taken[2:] {
		testkit.Must(t, file.Close())
	}
	if owner, err := h.Peer(raw); owner != p || err != nil {
		t.Errorf("the owner is %v, %v", owner, err)
	}
	testkit.Must(t, p.Terminate(t.Context(), 0))
}

// TestHaltedIsTold: a halted agent gets TERM and continues to its end, also its processes in other sessions. An agent that
// is told to end is not halted any more.
func TestHaltedIsTold(t *testing.T) {
	t.Parallel()
	h := open(t)
	// Each shell handles TERM before its PID is written. Sleep is started before that: a child that has inherited the shell's
	// handler loses a TERM that it gets before its execve.
	c := shell(t, `setsid sh -c 'sleep 1000 & trap "echo done >late; exit" TERM; echo $$ >pid; wait' &
		trap 'echo yes >heard; read line <go; exit 5' TERM; echo $$ >first; wait`)
	testkit.Must(t, syscall.Mkfifo(filepath.Join(c.Dir, "go"), 0o600))
	p := start(t, h, c)
	pids := []int{readPID(t, p.OSPID(), filepath.Join(c.Dir, "first")), readPID(t, p.OSPID(), filepath.Join(c.Dir, "pid"))}
	p.Want(true)
	p.Halt()
	testkit.Eventually(t, "all processes are stopped", func() bool { return allStopped(t, pids) })
	ended := make(chan error)
	go func() { ended <- p.Terminate(t.Context(), bound) }()
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(c.Dir, name))
		return err == nil
	}
	testkit.Eventually(t, "the processes have handled TERM", func() bool { return exists("heard") && exists("late") })
	p.Halt()
	p.Suspend()
	testkit.Must(t, os.WriteFile(filepath.Join(c.Dir, "go"), nil, 0o600))
	testkit.Must(t, <-ended)
	if exit := wait(t, p); exit.Code != 5 {
		t.Errorf("the program ended as %v", exit)
	}
}

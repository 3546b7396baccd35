package host_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/host"
)

// stateOf is the letter of a process's state: T where it is stopped.
func stateOf(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	check(t, err)
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}

// awaitStates waits until all processes are stopped, or none is.
func awaitStates(t *testing.T, pids []int, stopped bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if !slices.ContainsFunc(pids, func(pid int) bool { return stateOf(t, pid) == "T" != stopped }) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("processes %v: stopped %v did not come", pids, stopped)
		}
	}
}

// TestSuspend: an agent that is suspended stands still, those of it in other sessions too, goes on by itself, and ends as ever
// when it is told to meanwhile.
func TestSuspend(t *testing.T) {
	t.Parallel()
	h := open(t)
	p := start(t, h, shell(t, `setsid sh -c 'echo $$; while :; do sleep 0.01; done' & trap 'exit 5' TERM; echo $$; while :; do sleep 0.01; done`))
	lines := bufio.NewScanner(p.Conn())
	var pids []int
	for range 2 {
		if !lines.Scan() {
			t.Fatalf("it said nothing: %v", lines.Err())
		}
		pid, err := strconv.Atoi(lines.Text())
		check(t, err)
		pids = append(pids, pid)
	}
	over := make(chan struct{})
	suspend := func() {
		defer func() { over <- struct{}{} }()
		p.Suspend()
	}
	go suspend()
	awaitStates(t, pids, true)
	p.Suspend() // which returns at once
	awaitStates(t, pids, true)
	<-over
	awaitStates(t, pids, false)

	go suspend()
	awaitStates(t, pids, true)
	check(t, p.Terminate(t.Context(), time.Minute))
	<-over
	if exit := wait(t, p); exit.Code != 5 {
		t.Errorf("it ended as %v", exit)
	}
}

// TestPeerWithoutDescriptors: whose a peer is cannot be told without a descriptor. That is not taken for its end, nor is it
// taken for the operator, and it passes.
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
	c.Sandbox = host.SandboxOff // which would keep it from the socket
	p := start(t, h, c)
	conn, err := l.AcceptUnix()
	check(t, err)
	defer conn.Close()
	raw, err := conn.SyscallConn()
	check(t, err)
	check(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 100, Max: 100}))
	var taken []*os.File
	for err == nil {
		var file *os.File
		if file, err = os.Open(os.DevNull); err == nil {
			taken = append(taken, file)
		}
	}
	for left := range 2 { // it takes a descriptor to ask for the process, and one to look at it
		owner, err := h.Peer(raw)
		if owner != nil || !errors.Is(err, host.ErrExhausted) || !errors.Is(err, syscall.EMFILE) || errors.Is(err, host.ErrGone) {
			t.Errorf("with %d descriptors left it is %v's, %v", left, owner, err)
		}
		check(t, taken[left].Close())
	}
	for _, file := range taken[2:] {
		check(t, file.Close())
	}
	if owner, err := h.Peer(raw); owner != p || err != nil {
		t.Errorf("it is %v's, %v", owner, err)
	}
	check(t, p.Terminate(t.Context(), 0))
}

package scripts_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// talk is an open stream.
type talk struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr strings.Builder
}

// startTalk opens a stream and waits for the answer to its first line.
func startTalk(t *testing.T, p place) *talk {
	t.Helper()
	k := &talk{cmd: p.command(t.Context())}
	k.cmd.Stderr = &k.stderr
	in, err := k.cmd.StdinPipe()
	testkit.Must(t, err)
	out, err := k.cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, k.cmd.Start())
	k.in, k.out = in, bufio.NewReader(out)
	k.say(t)
	return k
}

// say sends a line and waits for its answer.
func (k *talk) say(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(k.in, line(1))
	testkit.Must(t, err)
	_, err = k.out.ReadString('\n')
	testkit.Must(t, err)
}

// end waits for the stream's end and returns its exit status. Its input stays open.
func (k *talk) end(t *testing.T) int {
	t.Helper()
	_, err := io.Copy(io.Discard, k.out)
	testkit.Must(t, err)
	_ = k.cmd.Wait() // only the status matters
	return statusOf(k.cmd.ProcessState)
}

// Ctrl-C ends a stream immediately, with the usual status of shells, and the kernel continues.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	p := settle(t)
	k := startTalk(t, p)
	testkit.Must(t, k.cmd.Process.Signal(os.Interrupt))
	if status := k.end(t); status != 130 || k.stderr.Len() > 0 {
		t.Errorf("exit status %d, stderr %q, want 130 and nothing", status, k.stderr.String())
	}
	p.pwos(t, "status")
	p.pwos(t, "shutdown")
}

// The death of a kernel during a stream is distinguished from its end.
func TestKernelDiesUnderAStream(t *testing.T) {
	t.Parallel()
	p := settle(t)
	k := startTalk(t, p)
	testkit.Must(t, p.kill())
	if status := k.end(t); status != 6 || !strings.Contains(k.stderr.String(), "closed the connection") {
		t.Errorf("exit status %d, stderr %q, want 6 and the reason", status, k.stderr.String())
	}
}

// So is a shutdown by another process. Earlier messages are answered.
func TestShutdownUnderAStream(t *testing.T) {
	t.Parallel()
	p := settle(t)
	k := startTalk(t, p)
	p.pwos(t, "shutdown")
	if status := k.end(t); status != 6 {
		t.Errorf("exit status %d, stderr %q, want 6", status, k.stderr.String())
	}
}

// Ctrl-C also ends a tail of the audit log. Each entry was written when it arrived, and the tail itself has one entry.
func TestInterruptedTail(t *testing.T) {
	t.Parallel()
	p := settle(t)
	p.pwos(t, "call", "Syscall.Ping", "payload=1")
	k := &talk{cmd: p.command(t.Context(), "audit", "tail", "--json", "--from", "1", "--type", "Memory.*")}
	k.cmd.Stderr = &k.stderr
	out, err := k.cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, k.cmd.Start())
	k.out = bufio.NewReader(out)
	for i := range 20 {
		key := "k" + strconv.Itoa(i)
		p.pwos(t, "mem", "set", key, "1")
		line, err := k.out.ReadString('\n') // while it runs
		testkit.Must(t, err)
		if !strings.Contains(line, `"type":"Memory.Set"`) || strings.Contains(line, "Audit.") {
			t.Errorf("printed %q", line)
		}
	}
	testkit.Must(t, k.cmd.Process.Signal(os.Interrupt))
	if status := k.end(t); status != 130 || k.stderr.Len() > 0 {
		t.Errorf("exit status %d, stderr %q, want 130 and nothing", status, k.stderr.String())
	}
	log := p.pwos(t, "audit", "log", "--json")
	if n := strings.Count(log, `"type":"Audit.`); n != 1 || !strings.Contains(log, `"type":"Audit.Subscribe"`) {
		t.Errorf("the tail has %d entries, want 1:\n%s", n, log)
	}
	p.pwos(t, "shutdown")
}

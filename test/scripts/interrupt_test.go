package scripts_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// talk is a stream that somebody holds open.
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
	must(t, err)
	out, err := k.cmd.StdoutPipe()
	must(t, err)
	must(t, k.cmd.Start())
	k.in, k.out = in, bufio.NewReader(out)
	k.say(t)
	return k
}

// say sends a line and waits for its answer.
func (k *talk) say(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(k.in, line(1))
	must(t, err)
	_, err = k.out.ReadString('\n')
	must(t, err)
}

// end waits for the stream's end and returns its exit status. Its input stays open.
func (k *talk) end(t *testing.T) int {
	t.Helper()
	_, err := io.Copy(io.Discard, k.out)
	must(t, err)
	_ = k.cmd.Wait() // what matters is the status
	return k.cmd.ProcessState.ExitCode()
}

// Ctrl-C ends a stream at once, with the status that shells know, and the kernel goes on.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	p := settle(t)
	k := startTalk(t, p)
	must(t, k.cmd.Process.Signal(os.Interrupt))
	if status := k.end(t); status != 130 || k.stderr.Len() > 0 {
		t.Errorf("exit status %d, stderr %q, want 130 and nothing", status, k.stderr.String())
	}
	p.pwos(t, "status")
	p.pwos(t, "shutdown")
}

// A kernel that dies under a stream is not taken for one that has said all it had to say.
func TestKernelDiesUnderAStream(t *testing.T) {
	t.Parallel()
	p := settle(t)
	k := startTalk(t, p)
	must(t, p.kill())
	if status := k.end(t); status != 6 || !strings.Contains(k.stderr.String(), "closed the connection") {
		t.Errorf("exit status %d, stderr %q, want 6 and the reason", status, k.stderr.String())
	}
}

// Nor is one that somebody else shuts down. What was said before is answered.
func TestShutdownUnderAStream(t *testing.T) {
	t.Parallel()
	p := settle(t)
	k := startTalk(t, p)
	p.pwos(t, "shutdown")
	if status := k.end(t); status != 6 {
		t.Errorf("exit status %d, stderr %q, want 6", status, k.stderr.String())
	}
}

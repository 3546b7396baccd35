package scripts_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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
	return k.cmd.ProcessState.ExitCode()
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

// Ctrl-C ends a measurement, and so does the end of its terminal; its processes and files are removed.
func TestInterruptOfBench(t *testing.T) {
	t.Parallel()
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 130, syscall.SIGHUP: 129} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := settle(t)
			cmd := p.command(t.Context(), "bench", "--own", "--only", "ping-1", "--duration", "5m", "--rounds", "1")
			var said strings.Builder
			cmd.Stderr = &said
			testkit.Must(t, cmd.Start())
			kernel := ownKernel(t, p)
			testkit.Must(t, cmd.Process.Signal(signal))
			_ = cmd.Wait() // only the status matters
			if status := cmd.ProcessState.ExitCode(); status != want {
				t.Errorf("exit status %d, want %d:\n%s", status, want, said.String())
			}
			if err := kernel.Signal(syscall.Signal(0)); err == nil {
				t.Error("the kernel of the measurement still runs")
			}
			left, err := os.ReadDir(p.Dir)
			testkit.Must(t, err)
			if len(left) > 0 {
				t.Errorf("the measurement has left files: %v", left)
			}
		})
	}
}

// ownKernel waits until the kernel of a measurement has started, and returns it.
func ownKernel(t *testing.T, p place) *os.Process {
	t.Helper()
	for limit := time.Now().Add(testkit.Patience); time.Now().Before(limit); <-time.After(time.Millisecond) {
		locks, err := filepath.Glob(filepath.Join(p.Dir, "pwos-bench-*", "run", "kernel.lock"))
		testkit.Must(t, err)
		if len(locks) != 1 {
			continue
		}
		text, err := os.ReadFile(locks[0])
		testkit.Must(t, err)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			kernel, err := os.FindProcess(pid)
			testkit.Must(t, err)
			return kernel
		}
	}
	t.Fatal("no kernel was started")
	return nil
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

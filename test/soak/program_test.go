package soak_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is the real daemon.
type program struct {
	place  *place
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

// launch starts the real daemon on the state there is, and waits until clients may connect.
func (p *place) launch(t *testing.T) *program {
	t.Helper()
	ready, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	d := &program{place: p, cmd: exec.Command(pwosd)}
	d.cmd.Env = []string{
		"HOME=" + p.dir, "PWOS_RUNTIME_DIR=" + p.path("r"), "PWOS_STATE_DIR=" + p.path("s"),
		"PWOS_CONFIG=" + p.path("config.toml"), "PWOS_READY_FD=3",
	}
	d.cmd.ExtraFiles, d.cmd.Stderr = []*os.File{told}, &d.stderr
	err = d.cmd.Start()
	_ = told.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.end(syscall.SIGKILL) })
	if line, err := bufio.NewReader(ready).ReadString('\n'); err != nil || !strings.HasPrefix(line, "READY") {
		t.Fatalf("pwosd said %q, %v", line, err)
	}
	return d
}

// end sends the signal, unless the daemon has ended, and waits for the end.
func (d *program) end(signal os.Signal) error {
	if d.cmd.ProcessState != nil {
		return nil
	}
	_ = d.cmd.Process.Signal(signal) // where it is gone, Wait says so
	return d.cmd.Wait()
}

// stop ends the daemon in good order.
func (d *program) stop(t *testing.T) {
	t.Helper()
	if err := d.end(syscall.SIGTERM); err != nil {
		t.Errorf("pwosd: %v\n%.2000s", err, d.stderr.String())
	}
}

// footprint is what the operating system says that the daemon takes.
type footprint struct{ memory, descriptors, threads int }

func (f footprint) String() string {
	return fmt.Sprintf("%d KiB of memory, %d descriptors, %d threads", f.memory>>10, f.descriptors, f.threads)
}

// footprint waits until no more descriptors are open than wanted, those of connections that are closing. Where want is 0 it
// takes the fewest that it sees: just after its start the daemon closes one or two more.
func (d *program) footprint(t *testing.T, want int) footprint {
	t.Helper()
	f := footprint{descriptors: d.place.descriptors(t, d.cmd.Process.Pid)}
	for limit := time.Now().Add(patience / 4); want > 0 && f.descriptors > want && time.Now().Before(limit); {
		<-time.After(10 * time.Millisecond)
		f.descriptors = d.place.descriptors(t, d.cmd.Process.Pid)
	}
	for i := 0; i < 20 && want == 0; i++ {
		<-time.After(10 * time.Millisecond)
		f.descriptors = min(f.descriptors, d.place.descriptors(t, d.cmd.Process.Pid))
	}
	f.memory, f.threads = d.status(t, "RssAnon:")<<10, d.status(t, "Threads:")
	return f
}

// status reads a number from /proc/<pid>/status.
func (d *program) status(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("no %s in /proc/<pid>/status", name)
	}
	n, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

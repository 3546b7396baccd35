package testkit

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Daemon describes how a test starts daemons as processes, one after the other on the same state.
type Daemon struct {
	Command []string             // program and arguments
	Dir     string               // its home, with runtime directory r and state directory s, and config.toml where that is there
	Env     []string             // in addition to those of the places, such as PATH
	As      *syscall.SysProcAttr // the user it runs as; nil: the user of the test
	Log     string               // a file to which all processes append their output; "": each process keeps its own in memory
}

// Process is a daemon that was started.
type Process struct {
	cmd    *exec.Cmd
	ready  *os.File
	output Buffer
	log    string
	exited chan struct{} // closed when err is what Wait returned
	err    error
}

// Start starts a daemon and waits until clients may connect. The test's end kills a daemon that still runs.
func (d *Daemon) Start(t testing.TB) *Process {
	t.Helper()
	p := d.Launch(t)
	p.Await(t)
	return p
}

// Launch is Start without the wait.
func (d *Daemon) Launch(t testing.TB) *Process {
	t.Helper()
	ready, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{cmd: exec.Command(d.Command[0], d.Command[1:]...), ready: ready, exited: make(chan struct{})}
	place := func(name string) string { return filepath.Join(d.Dir, name) }
	p.cmd.Env = append([]string{"HOME=" + d.Dir, "PWOS_RUNTIME_DIR=" + place("r"), "PWOS_STATE_DIR=" + place("s"), "PWOS_READY_FD=3"}, d.Env...)
	if _, err := os.Stat(place("config.toml")); err == nil {
		p.cmd.Env = append(p.cmd.Env, "PWOS_CONFIG="+place("config.toml"))
	}
	p.cmd.SysProcAttr = d.As
	p.cmd.ExtraFiles, p.cmd.Stdout, p.cmd.Stderr = []*os.File{told}, &p.output, &p.output
	if d.Log != "" {
		file, err := os.OpenFile(d.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		p.cmd.Stdout, p.cmd.Stderr, p.log = file, file, d.Log
	}
	err = p.cmd.Start()
	_ = told.Close()
	if err != nil {
		_ = ready.Close()
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() { p.signalAndWait(t, syscall.SIGKILL) })
	return p
}

// Await waits until clients may connect.
func (p *Process) Await(t testing.TB) {
	t.Helper()
	if err := p.ready.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(p.ready).ReadString('\n'); err != nil || !strings.HasPrefix(line, "READY") {
		t.Fatalf("the daemon said %q, %v\n%s", line, err, p.Output())
	}
}

// Ended is closed once it has ended.
func (p *Process) Ended() <-chan struct{} { return p.exited }

// PID is the process's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output returns what it has written to standard output and standard error so far.
func (p *Process) Output() string {
	if p.log == "" {
		return p.output.String()
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop ends it cleanly. It does nothing if it has ended.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	p.signalAndWait(t, syscall.SIGTERM)
	p.wellEnded(t)
}

// Wait waits until it ends cleanly by itself.
func (p *Process) Wait(t testing.TB) {
	t.Helper()
	p.signalAndWait(t, nil)
	p.wellEnded(t)
}

func (p *Process) wellEnded(t testing.TB) {
	t.Helper()
	if p.err != nil && p.killed() == nil {
		t.Errorf("the daemon ended with %v\n%.4000s", p.err, p.Output())
	}
}

// Signal sends it a signal, and waits for nothing.
func (p *Process) Signal(t testing.TB, signal os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Error(err)
	}
}

// Kill ends it with SIGKILL. It is an error if it has ended by itself. It does nothing if the test has ended it.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if p.signalAndWait(t, syscall.SIGKILL); p.killed() == nil {
		t.Errorf("the daemon ended by itself: %v\n%.4000s", p.err, p.Output())
	}
}

// killed is the error of a process that SIGKILL has ended, nil for any other.
func (p *Process) killed() error {
	if p.cmd.ProcessState.String() == "signal: killed" {
		return p.err
	}
	return nil
}

// End sends any signal and waits for the end, whatever the exit status.
func (p *Process) End(t testing.TB, signal os.Signal) { t.Helper(); p.signalAndWait(t, signal) }

// signalAndWait sends a signal, unless that is nil, and waits for the end. A daemon that hangs prints its goroutines.
func (p *Process) signalAndWait(t testing.TB, signal os.Signal) {
	t.Helper()
	if signal != nil {
		_ = p.cmd.Process.Signal(signal) // it may have ended already
	}
	hung := time.AfterFunc(Patience, func() { _ = p.cmd.Process.Signal(syscall.SIGQUIT) })
	select {
	case <-p.exited:
	case <-time.After(Patience + Patience/4):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	if !hung.Stop() {
		t.Errorf("the daemon does not end\n%s", p.Output())
	}
	_ = p.ready.Close()
}

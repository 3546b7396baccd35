// Package life runs a daemon as a process of a test's own, one life after the other on what the one before left.
package life

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience ends a test that waits for what never comes; nothing is measured by it.
const patience = 2 * time.Minute

// Daemon is what is started.
type Daemon struct {
	Command []string             // program and arguments
	Dir     string               // its home, with runtime directory r and state directory s, and config.toml where that is there
	Env     []string             // beside those of the places, such as PATH
	As      *syscall.SysProcAttr // whom it runs as; nil: who runs the test
	Log     string               // a file that all lives add to what they say; "": it is kept in memory, for each life
}

// Life is a daemon's from its start to its end.
type Life struct {
	cmd    *exec.Cmd
	ready  *os.File
	said   said
	log    string
	exited chan struct{} // closed when err is what Wait returned
	err    error
}

// Start starts a daemon and waits until clients may connect. The test's end kills it, unless it has ended before.
func (d *Daemon) Start(t testing.TB) *Life {
	t.Helper()
	l := d.Launch(t)
	l.Await(t)
	return l
}

// Launch is Start that waits for nothing.
func (d *Daemon) Launch(t testing.TB) *Life {
	t.Helper()
	ready, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l := &Life{cmd: exec.Command(d.Command[0], d.Command[1:]...), ready: ready, exited: make(chan struct{})}
	place := func(name string) string { return filepath.Join(d.Dir, name) }
	l.cmd.Env = append([]string{"HOME=" + d.Dir, "PWOS_RUNTIME_DIR=" + place("r"), "PWOS_STATE_DIR=" + place("s"), "PWOS_READY_FD=3"}, d.Env...)
	if _, err := os.Stat(place("config.toml")); err == nil {
		l.cmd.Env = append(l.cmd.Env, "PWOS_CONFIG="+place("config.toml"))
	}
	l.cmd.SysProcAttr = d.As
	l.cmd.ExtraFiles, l.cmd.Stdout, l.cmd.Stderr = []*os.File{told}, &l.said, &l.said
	if d.Log != "" {
		file, err := os.OpenFile(d.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		l.cmd.Stdout, l.cmd.Stderr, l.log = file, file, d.Log
	}
	err = l.cmd.Start()
	_ = told.Close()
	if err != nil {
		_ = ready.Close()
		t.Fatal(err)
	}
	go func() {
		l.err = l.cmd.Wait()
		close(l.exited)
	}()
	t.Cleanup(func() { l.end(t, syscall.SIGKILL) })
	return l
}

// Await waits until clients may connect.
func (l *Life) Await(t testing.TB) {
	t.Helper()
	if err := l.ready.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(l.ready).ReadString('\n'); err != nil || !strings.HasPrefix(line, "READY") {
		t.Fatalf("the daemon said %q, %v\n%s", line, err, l.Said())
	}
}

// PID is the process's.
func (l *Life) PID() int { return l.cmd.Process.Pid }

// Said is what it has written to standard output and standard error so far: all of it, once it has ended.
func (l *Life) Said() string {
	if l.log == "" {
		return l.said.String()
	}
	text, err := os.ReadFile(l.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop ends it in good order. It does nothing where it has been ended.
func (l *Life) Stop(t testing.TB) {
	t.Helper()
	l.end(t, syscall.SIGTERM)
	l.wellEnded(t)
}

// Wait waits until it has ended by itself, in good order.
func (l *Life) Wait(t testing.TB) {
	t.Helper()
	l.end(t, nil)
	l.wellEnded(t)
}

func (l *Life) wellEnded(t testing.TB) {
	t.Helper()
	if l.err != nil && l.killed() == nil {
		t.Errorf("the daemon ended with %v\n%.4000s", l.err, l.Said())
	}
}

// Signal sends it a signal, and waits for nothing.
func (l *Life) Signal(t testing.TB, signal os.Signal) {
	t.Helper()
	if err := l.cmd.Process.Signal(signal); err != nil {
		t.Error(err)
	}
}

// Kill ends it the hard way, unless it has ended itself: which it must not. It does nothing where it has been ended.
func (l *Life) Kill(t testing.TB) {
	t.Helper()
	if l.end(t, syscall.SIGKILL); l.killed() == nil {
		t.Errorf("the daemon ended by itself: %v\n%.4000s", l.err, l.Said())
	}
}

// killed is the error of a life that was ended by KILL, nil for any other.
func (l *Life) killed() error {
	if l.cmd.ProcessState.String() == "signal: killed" {
		return l.err
	}
	return nil
}

// End sends it any signal and waits for its end, whatever that is.
func (l *Life) End(t testing.TB, signal os.Signal) { t.Helper(); l.end(t, signal) }

// end sends a signal, unless that is nil, and waits for the end. A daemon that does not come to it says what it is at.
func (l *Life) end(t testing.TB, signal os.Signal) {
	t.Helper()
	if signal != nil {
		_ = l.cmd.Process.Signal(signal) // it may have ended already
	}
	hung := time.AfterFunc(patience, func() { _ = l.cmd.Process.Signal(syscall.SIGQUIT) })
	select {
	case <-l.exited:
	case <-time.After(patience + patience/4):
		_ = l.cmd.Process.Kill()
		<-l.exited
	}
	if !hung.Stop() {
		t.Errorf("the daemon does not end\n%s", l.Said())
	}
	_ = l.ready.Close()
}

// said gathers what a daemon writes while others read it.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// String returns all of it.
func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

package screen

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Screen is a pseudo-terminal with a program in it. It stores everything that the program prints.
type Screen struct {
	Theirs *os.File // the program's end; open here too, so that the terminal outlives the program

	t        testing.TB
	ours     *os.File
	cmd      *exec.Cmd
	patience time.Duration
	reading  sync.WaitGroup
	hangUp   func() error

	mu    sync.Mutex
	shown bytes.Buffer
	seen  int // how much of it Expect has matched
}

// Open opens a pseudo-terminal whose ends do not block a thread of this process.
func Open() (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var n int
	raw, err := ours.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
				n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
			}
		})
	}
	if err == nil {
		theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}

// Sit starts a command in a terminal of 80 by 24, which is its controlling terminal. The test's end kills it. An expected
// text must appear within patience.
func Sit(t testing.TB, cmd *exec.Cmd, patience time.Duration) *Screen {
	t.Helper()
	ours, theirs, err := Open()
	if err != nil {
		t.Skipf("no terminal is available: %v", err)
	}
	s := &Screen{Theirs: theirs, t: t, ours: ours, cmd: cmd, patience: patience, hangUp: sync.OnceValue(ours.Close)}
	s.Resize(80, 24)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s.must(cmd.Start())
	s.reading.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, err := ours.Read(buffer)
			s.mu.Lock()
			s.shown.Write(buffer[:n])
			s.mu.Unlock()
			if err != nil { // one of the ends is closed
				return
			}
		}
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // a second time, after Status
		_ = theirs.Close()
		_ = s.hangUp()
		s.reading.Wait()
	})
	return s
}

func (s *Screen) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// Resize changes the size of the terminal.
func (s *Screen) Resize(columns, rows uint16) {
	s.t.Helper()
	s.must(unix.IoctlSetWinsize(int(s.Theirs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}))
}

// Settings returns the settings of the terminal.
func (s *Screen) Settings() unix.Termios {
	s.t.Helper()
	settings, err := unix.IoctlGetTermios(int(s.Theirs.Fd()), unix.TCGETS)
	s.must(err)
	return *settings
}

// Enter writes text to the terminal, as typed.
func (s *Screen) Enter(text string) {
	s.t.Helper()
	_, err := s.ours.WriteString(text)
	s.must(err)
}

// Signal sends the program a signal.
func (s *Screen) Signal(signal os.Signal) {
	s.t.Helper()
	s.must(s.cmd.Process.Signal(signal))
}

// HangUp closes the terminal.
func (s *Screen) HangUp() {
	s.t.Helper()
	s.must(s.hangUp())
}

// Insist types text, and repeats it each second, until the output since the last match matches: programs drop keys while
// they start.
func (s *Screen) Insist(text, pattern string) {
	s.t.Helper()
	wanted := regexp.MustCompile(pattern)
	for limit := time.Now().Add(s.patience); ; {
		s.Enter(text)
		if _, ok := s.await(wanted, min(time.Second, s.patience)); ok {
			return
		}
		if time.Now().After(limit) {
			s.t.Fatalf("the terminal does not show %q, but %q", pattern, s.unseen())
		}
	}
}

// Expect waits until the output since the last match matches, and returns the match.
func (s *Screen) Expect(pattern string) string {
	s.t.Helper()
	match, ok := s.await(regexp.MustCompile(pattern), s.patience)
	if !ok {
		s.t.Fatalf("the terminal does not show %q, but %q", pattern, s.unseen())
	}
	return match
}

func (s *Screen) await(wanted *regexp.Regexp, patience time.Duration) (match string, ok bool) {
	for limit := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		s.mu.Lock()
		text := s.shown.Bytes()[s.seen:]
		at := wanted.FindIndex(text)
		if at != nil {
			match = string(text[at[0]:at[1]])
			s.seen += at[1]
		}
		s.mu.Unlock()
		if at != nil || time.Now().After(limit) {
			return match, at != nil
		}
	}
}

func (s *Screen) unseen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.shown.Bytes()[s.seen:])
}

// Status waits for the end of the program, and returns its exit status.
func (s *Screen) Status() int {
	s.t.Helper()
	if err := s.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		s.t.Fatal(err)
	}
	return s.cmd.ProcessState.ExitCode()
}

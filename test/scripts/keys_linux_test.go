package scripts_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/testkit"
)

// sitting is a pwos at a terminal, with a person at the keyboard.
type sitting struct {
	cmd    *exec.Cmd
	ours   *os.File // the keyboard's end
	theirs *os.File // open, so that the terminal's settings stay
	before unix.Termios
	reader sync.WaitGroup

	mu     sync.Mutex
	seen   strings.Builder // output after the last awaited sequence
	screen *vt.Emulator
	news   chan struct{}
}

// sit starts pwos in a new terminal.
func sit(t *testing.T, p place, args ...string) *sitting {
	t.Helper()
	return sitWith(t, p.command(t.Context(), args...))
}

// sitWith is sit for a command.
func sitWith(t *testing.T, cmd *exec.Cmd) *sitting {
	t.Helper()
	ours, theirs, err := openTerminal()
	testkit.Must(t, err)
	s := &sitting{cmd: cmd, ours: ours, theirs: theirs, news: make(chan struct{}, 1), screen: vt.NewEmulator(120, 24)}
	testkit.Must(t, unix.IoctlSetWinsize(int(theirs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 120}))
	s.before = s.settings(t)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = theirs, theirs, theirs
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	testkit.Must(t, s.cmd.Start())
	s.reader.Go(s.read)
	s.reader.Go(func() { _, _ = io.Copy(io.Discard, s.screen) }) // its answers, until read closes them: the tests give their own
	return s
}

// resize changes the size of the terminal.
func (s *sitting) resize(t *testing.T, columns, rows int) {
	t.Helper()
	s.mu.Lock()
	s.screen.Resize(columns, rows)
	s.mu.Unlock()
	testkit.Must(t, unix.IoctlSetWinsize(int(s.theirs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)}))
	testkit.Must(t, s.cmd.Process.Signal(unix.SIGWINCH))
}

func (s *sitting) settings(t *testing.T) unix.Termios {
	t.Helper()
	termios, err := unix.IoctlGetTermios(int(s.theirs.Fd()), unix.TCGETS)
	testkit.Must(t, err)
	return *termios
}

// read stores the output, until no process has the terminal open any more.
func (s *sitting) read() {
	defer s.screen.InputPipe().(io.Closer).Close() // never fails
	buf := make([]byte, 4096)
	for {
		n, err := s.ours.Read(buf)
		s.mu.Lock()
		s.seen.Write(buf[:n])
		_, _ = s.screen.Write(buf[:n]) // never fails
		s.mu.Unlock()
		select {
		case s.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// await waits until the screen shows text, or, for an escape sequence, until it is sent after the last awaited one.
func (s *sitting) await(t *testing.T, text string) {
	t.Helper()
	late := time.NewTimer(testkit.Patience)
	defer late.Stop()
	for {
		s.mu.Lock()
		all := s.screen.String()
		found := strings.Contains(all, text)
		if text[0] == '\x1b' {
			all = s.seen.String()
			var after string
			if _, after, found = strings.Cut(all, text); found {
				s.seen.Reset()
				s.seen.WriteString(after)
			}
		}
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-s.news:
		case <-late.C:
			t.Fatalf("%q was not shown, but %q", text, all)
		}
	}
}

func (s *sitting) press(t *testing.T, keys string) {
	t.Helper()
	_, err := io.WriteString(s.ours, keys)
	testkit.Must(t, err)
}

// leave waits for the end and checks that the terminal's settings are unchanged.
func (s *sitting) leave(t *testing.T, status int) {
	t.Helper()
	_ = s.cmd.Wait() // only the status matters
	if got := statusOf(s.cmd.ProcessState); got != status {
		t.Errorf("exit status %d, want %d", got, status)
	}
	if after := s.settings(t); after != s.before {
		t.Errorf("the terminal's settings were %+v, and are %+v", s.before, after)
	}
	testkit.Must(t, s.theirs.Close())
	s.reader.Wait()
	testkit.Must(t, s.ours.Close())
}

const (
	ownScreen   = "\x1b[?1049h"
	usualScreen = "\x1b[?1049l"
	downKey     = "\x1b[B"
	ctrlC       = "\x03"
)

// Keys select a process, revoke its grant, and kill it; nothing is done without a confirmation. The terminal is restored.
func TestTop(t *testing.T) {
	t.Parallel()
	p := settle(t)
	p.pwos(t, "spawn", "first")
	p.pwos(t, "spawn", "second")
	s := sit(t, p, "top")
	s.await(t, ownScreen)
	s.await(t, "> 1    first")
	s.press(t, downKey)
	s.await(t, "> 2    second")
	s.press(t, "K")
	s.await(t, "kill pid 2 and its descendants? y/n")
	s.press(t, "n")
	s.await(t, "nothing was done")
	s.press(t, "R")
	s.await(t, "revoke the grant of pid 2? y/n")
	s.press(t, "y")
	s.await(t, "revoked the grant of pid 2")
	if out, _ := p.command(t.Context(), "cap", "show").Output(); strings.Contains(string(out), `"pid":2`) {
		t.Errorf("pid 2 still has a grant: %s", out)
	}
	s.press(t, "Ky")
	s.await(t, "killed pid 2")
	s.await(t, "> 1    first")
	if out := p.pwos(t, "ps"); strings.Contains(out, "second") || !strings.Contains(out, "first") {
		t.Errorf("ps lists %s", out)
	}
	s.await(t, "calls ")
	s.press(t, "q")
	s.await(t, usualScreen)
	s.leave(t, 0)
	p.pwos(t, "shutdown")
}

// Tab shows the next kernel of the cluster. There K ends what this kernel has spawned, and R does nothing. A kernel that
// does not run is marked, with the reason in place of its processes, and is shown again when it runs; the screen follows
// the terminal's size.
func TestTopOfKernels(t *testing.T) {
	t.Parallel()
	p := settle(t)
	demo := p.command(context.Background(), "cluster", "demo", p.Path("two")) // the interrupt below ends it, and it ends its kernels
	demo.Env = append(demo.Env, "PATH="+filepath.Dir(testkit.Program(t, "pwos-bus"))+":"+os.Getenv(binDirEnv)+":"+os.Getenv("PATH"))
	out := testkit.Value(demo.StdoutPipe())(t)
	testkit.Must(t, demo.Start())
	t.Cleanup(func() {
		testkit.Must(t, demo.Process.Signal(os.Interrupt))
		_ = demo.Wait() // it was told to end
	})
	testkit.Value(bufio.NewReader(out).ReadString('\n'))(t)
	at := func(kernel string, args ...string) *exec.Cmd {
		cmd := p.command(t.Context(), args...)
		dir := p.Path("two/" + kernel)
		cmd.Env = append(cmd.Env, "PWOS_RUNTIME_DIR="+dir+"/run", "PWOS_STATE_DIR="+dir+"/state", "PWOS_CONFIG="+dir+"/config.toml")
		return cmd
	}
	run := func(kernel string, args ...string) {
		t.Helper()
		if out, err := at(kernel, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %v\n%s", kernel, args, err, out)
		}
	}
	run("alpha", "spawn", "here")
	run("alpha", "spawn", "there", "--on", "beta", "--allow", "Syscall.SendMsg")
	s := sitWith(t, at("alpha", "top", "--all", "--every", "100ms"))
	s.await(t, "kernels: [alpha] beta   Tab shows the next")
	s.await(t, "> 1    here")
	s.press(t, "\t")
	s.await(t, "kernels: alpha [beta]")
	s.await(t, "> 1    kernel-alpha")
	s.press(t, "R")
	s.await(t, `grants of beta are revoked there: "pwos cap revoke"`)
	s.press(t, "j")
	s.await(t, "> 2      kernel-alpha/there")
	s.press(t, "K")
	s.await(t, "kill pid 2 of beta and its descendants? y/n")
	s.press(t, "y")
	s.await(t, "killed pid 2")
	s.resize(t, 60, 12)
	s.await(t, "> 1    kernel-alpha  READY")
	run("beta", "shutdown")
	s.await(t, "kernels: alpha [beta (away)]")
	s.await(t, "the kernel beta cannot be reached")
	s.press(t, "\t")
	s.await(t, "kernels: [alpha] beta (away)")
	s.await(t, "> 1    here")
	run("beta", "spawn", "later") // which starts it
	s.press(t, "\t")
	s.await(t, "later")
	s.await(t, "kernels: alpha [beta]")
	s.press(t, "q")
	s.await(t, usualScreen)
	s.leave(t, 0)
	run("beta", "shutdown")
}

// However top ends, the terminal is restored: by Ctrl-C, which arrives as a key, by a signal, or by the kernel's end.
func TestTopGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		by     func(t *testing.T, p place, s *sitting)
		status int
	}{
		"Ctrl-C": {func(t *testing.T, _ place, s *sitting) { s.press(t, ctrlC) }, 0},
		"SIGTERM": {func(t *testing.T, _ place, s *sitting) {
			testkit.Must(t, s.cmd.Process.Signal(syscall.SIGTERM))
		}, 130},
		"SIGHUP": {func(t *testing.T, _ place, s *sitting) {
			testkit.Must(t, s.cmd.Process.Signal(syscall.SIGHUP))
		}, 129},
		"the kernel's death": {func(t *testing.T, p place, _ *sitting) { testkit.Must(t, p.kill()) }, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := settle(t)
			p.pwos(t, "spawn", "one")
			s := sit(t, p, "top", "--every", "100ms")
			s.await(t, "q quit")
			end.by(t, p, s)
			s.await(t, usualScreen)
			s.leave(t, end.status)
			if end.status != 6 {
				p.pwos(t, "shutdown")
			}
		})
	}
}

// Ctrl-C in the foreground ends the agent with what it has started, and run ends after them.
func TestRunCtrlC(t *testing.T) {
	t.Parallel()
	p := settle(t)
	testkit.Must(t, os.Mkdir(p.Dir+"/work", 0o700))
	s := sit(t, p, "run", "--dir", "work", "--", "sh", "-c", "sleep 1000 & echo begun >&2; wait")
	s.await(t, "begun")
	s.press(t, ctrlC)
	s.leave(t, 130)
	if out := p.pwos(t, "ps"); out != "" {
		t.Errorf("processes of the agent are left: %s", out)
	}
	p.pwos(t, "shutdown")
}

// Without a terminal of its own an agent's output is shown, but not interpreted by this one.
func TestRunAtATerminalEscapes(t *testing.T) {
	t.Parallel()
	p := settle(t)
	testkit.Must(t, os.Mkdir(p.Dir+"/work", 0o700))
	s := sit(t, p, "run", "--no-tty", "--dir", "work", "--", "sh", "-c", `printf '\033[2Jgr\303\274n\ttab\n' >&2`)
	s.await(t, `\u001b[2Jgrün`)
	s.leave(t, 0)
	p.pwos(t, "shutdown")
}

// The terminal's answers to a program that has ended, and what was pressed before them, do not reach the shell; what is pressed
// after them does.
func TestRunAtATerminalDrains(t *testing.T) {
	t.Parallel()
	p := settle(t)
	testkit.Must(t, os.Mkdir(p.Dir+"/work", 0o700))
	s := sit(t, p, "run", "--dir", "work", "--", "sh", "-c", `printf '\033[6n\033[c\033]11;?\007'`)
	s.await(t, "\x1b[6n")
	testkit.Eventually(t, "the program has ended, and pwos asks the terminal or has ended too", func() bool {
		s.mu.Lock()
		asked := strings.Contains(s.seen.String(), "\x1b[5n")
		s.mu.Unlock()
		var ended unix.Siginfo
		err := unix.Waitid(unix.P_PID, s.cmd.Process.Pid, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		return asked || err == nil && ended.Signo != 0
	})
	s.press(t, "\x1b[12;40R\x1b[?62;22c\x1b]11;rgb:0000/0000/0000\x1b\\typed\x1b[0n")
	_ = s.cmd.Wait()
	s.press(t, "ls\n")
	buf := make([]byte, 64)
	if n, err := s.theirs.Read(buf); err != nil || string(buf[:n]) != "ls\n" {
		t.Errorf("the shell reads %q, %v", buf[:n], err)
	}
	s.leave(t, 0)
	p.pwos(t, "shutdown")
}

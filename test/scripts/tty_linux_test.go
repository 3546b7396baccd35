package scripts_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a terminal in front of which a test sits, with a program that runs in it.
type screen struct {
	t            *testing.T
	ours, theirs *os.File // theirs stays open, so that the terminal outlives the program
	cmd          *exec.Cmd
	reading      sync.WaitGroup

	mu    sync.Mutex
	shown bytes.Buffer
	seen  int // of it, by expect
}

// sitDown runs pwos in a terminal of 80 by 24.
func sitDown(t *testing.T, p place, args ...string) *screen {
	t.Helper()
	ours, theirs, err := openTerminal()
	if err != nil {
		t.Skipf("no terminal to be had: %v", err)
	}
	s := &screen{t: t, ours: ours, theirs: theirs, cmd: p.command(t.Context(), args...)}
	s.resize(80, 24)
	s.cmd.Env = append(s.cmd.Env, "TERM=dumb")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = theirs, theirs, theirs
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, s.cmd.Start())
	s.reading.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, err := ours.Read(buffer)
			s.mu.Lock()
			s.shown.Write(buffer[:n])
			s.mu.Unlock()
			if err != nil { // nobody has the other end
				return
			}
		}
	})
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = theirs.Close()
		s.reading.Wait()
		must(t, ours.Close())
	})
	return s
}

func (s *screen) resize(columns, rows uint16) {
	s.t.Helper()
	must(s.t, unix.IoctlSetWinsize(int(s.theirs.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}))
}

// enter types text.
func (s *screen) enter(text string) {
	s.t.Helper()
	_, err := s.ours.WriteString(text)
	must(s.t, err)
}

// expect waits until what was shown since the last time matches, and returns the match.
func (s *screen) expect(pattern string) string {
	s.t.Helper()
	wanted := regexp.MustCompile(pattern)
	for limit := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		s.mu.Lock()
		text := s.shown.Bytes()[s.seen:]
		at := wanted.FindIndex(text)
		if at != nil {
			match := string(text[at[0]:at[1]])
			s.seen += at[1]
			s.mu.Unlock()
			return match
		}
		s.mu.Unlock()
		if time.Now().After(limit) {
			s.t.Fatalf("the terminal does not show %q, but %q", pattern, text)
		}
	}
}

// status waits for the end of the program.
func (s *screen) status() int {
	s.t.Helper()
	if err := s.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		s.t.Fatal(err)
	}
	return s.cmd.ProcessState.ExitCode()
}

// A shell has the terminal as if it had been started there: job control, size, interrupts, exit status; and the channel beside it.
func TestTerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	p := settle(t)
	work := t.TempDir()
	s := sitDown(t, p, "run", "--tty", "--dir", work, "--home", os.TempDir(), "--name", "shell", "--env", "PS1=ready> ",
		"--env", "ASKED=yes", "--", "bash", "--noprofile", "--norc")
	usual, err := unix.IoctlGetTermios(int(s.theirs.Fd()), unix.TCGETS)
	must(t, err)
	s.expect("ready> ")

	s.enter("stty size; echo $TERM $ASKED $HOME $PWOS_FD\r")
	s.expect(`\r\n24 80\r\ndumb yes ` + regexp.QuoteMeta(os.TempDir()) + ` 3\r\n`)
	s.resize(100, 40)
	for limit := time.Now().Add(patience); ; {
		s.enter("stty size\r")
		if size := s.expect(`\r\n[0-9]+ [0-9]+\r\n`); strings.Contains(size, "40 100") {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("the size stays as it was")
		}
	}

	s.enter("sleep 1000 &\r")
	s.expect(`\[1\] [0-9]+`)
	s.enter("jobs\r")
	s.expect(`\[1\]\+ +Running +sleep 1000`)
	s.enter("fg\r")
	s.expect(`\r\nsleep 1000\r\n`)
	s.enter("\x1a") // Ctrl-Z
	s.expect(`\[1\]\+ +Stopped +sleep 1000`)
	s.enter("bg; wait\r")
	s.expect(`sleep 1000 &`)
	s.enter("\x03") // Ctrl-C
	s.expect(`\^C`)
	s.enter("fg\r")
	s.expect(`\r\nsleep 1000\r\n`)
	s.enter("\x03")
	s.expect(`\^C`)
	s.enter("echo status $?\r")
	s.expect(`\r\nstatus 130\r\n`)
	s.enter("tty </dev/tty >/dev/null && echo mine\r") // the controlling terminal can be opened
	s.expect(`\r\nmine\r\n`)

	s.enter(`read -r -u 3 hello; printf '{"kind":"reply","type":"Syscall.Authenticate","data":null}\n' >&3` + "\r")
	s.enter(`printf '{"kind":"query","type":"Syscall.Ping","data":{"payload":7},"metadata":{"id":"m","timestamp":0}}\n' >&3; read -r -u 3 answer; echo "${answer:0:60}"` + "\r")
	s.expect(`\r\n\{"kind":"reply","type":"Syscall.Ping","data":\{"payload":7\}`)

	s.enter("exit 7\r")
	s.expect(`pwos: pid [0-9]+ \(shell\) exited 7 after 1 call, 0 refused: pwos audit log --pid [0-9]+`)
	if got := s.status(); got != 7 {
		t.Errorf("exit status %d", got)
	}
	after, err := unix.IoctlGetTermios(int(s.theirs.Fd()), unix.TCGETS)
	must(t, err)
	if after.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) != unix.ICANON|unix.ECHO|unix.ISIG {
		t.Errorf("the terminal is left as %+v, was %+v", after, usual)
	}
	must(t, p.kill())
}

// Whose terminal goes away gets SIGHUP, in whatever way the client ends.
func TestTerminalHangsUp(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "asked": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := settle(t)
			work := t.TempDir()
			s := sitDown(t, p, "run", "--tty", "--dir", work, "--", "sh", "-c", `trap "" TERM; trap "echo HUP >said; exit" HUP; echo begun; while :; do sleep 0.1; done`)
			s.expect("begun")
			must(t, s.cmd.Process.Signal(signal))
			s.status()
			for limit := time.Now().Add(patience); ; {
				if out, err := os.ReadFile(work + "/said"); err == nil && string(out) == "HUP\n" && p.pwos(t, "ps") == "" {
					break
				}
				if time.Now().After(limit) {
					t.Fatal("the program goes on")
				}
			}
			must(t, p.kill())
		})
	}
}

// Nobody but the operator names a terminal, and nothing but a pseudo-terminal that nobody has.
func TestTerminalRefused(t *testing.T) {
	t.Parallel()
	p := settle(t)
	for data, want := range map[string]string{
		`{"child_agent_id":"x","command":["true"],"tty":"/dev/null1"}`:                                           "must be a pseudo-terminal",
		`{"child_agent_id":"x","command":["true"],"tty":"/dev/pts/../null"}`:                                     "must be a pseudo-terminal",
		`{"child_agent_id":"x","command":["true"],"tty":"/dev/pts/1","restart":"always"}`:                        "must be never with a tty",
		`{"child_agent_id":"x","command":["true"],"tty":"/dev/pts/1","channel":"stdio"}`:                         "must be fd3 with a tty",
		`{"child_agent_id":"x","tty":"/dev/pts/1"}`:                                                              "name one with command",
		`{"child_agent_id":"x","command":["true"],"tty":"/dev/pts/1","pid":` + spawned(t, p, "agent", "*") + `}`: "only the operator may",
	} {
		_, says, status := p.pwosWith(t, nil, "call", "Syscall.Spawn", "--data", data)
		if status == 0 || !strings.Contains(says, want) {
			t.Errorf("%s: %d, %s", data, status, says)
		}
	}
	must(t, p.kill())
}

// spawned adds a process without a program and returns its PID.
func spawned(t *testing.T, p place, name, allow string) string {
	t.Helper()
	out := p.pwos(t, "spawn", name, "--allow", allow, "--json")
	pid := regexp.MustCompile(`"child_pid":([0-9]+)`).FindStringSubmatch(out)
	if pid == nil {
		t.Fatalf("spawned %s", out)
	}
	return pid[1]
}

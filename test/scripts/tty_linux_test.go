package scripts_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/screen"
	"github.com/promptware-os/pwos/internal/testkit"
)

// sitDown runs pwos in a terminal of 80 by 24.
func sitDown(t *testing.T, p place, args ...string) *screen.Screen {
	t.Helper()
	cmd := p.command(t.Context(), args...)
	cmd.Env = append(cmd.Env, "TERM=dumb")
	return screen.Sit(t, cmd, testkit.Patience)
}

// A shell uses the terminal as if it had been started there: job control, size, interrupts, exit status; and it has the
// channel.
func TestTerminal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	p := settle(t)
	work, home := t.TempDir(), t.TempDir() // not that of other tests, whose repositories come and go
	s := sitDown(t, p, "run", "--dir", work, "--home", home, "--name", "shell", "--env", "PS1=ready> ",
		"--env", "ASKED=yes", "--env", "HISTFILE=/dev/null", "--", "bash", "--noprofile", "--norc")
	usual := s.Settings()
	s.Expect("ready> ")

	s.Enter("stty size; echo $TERM $ASKED $HOME $PWOS_FD\r")
	s.Expect(`\r\n24 80\r\ndumb yes ` + regexp.QuoteMeta(home) + ` 3\r\n`)
	s.Resize(100, 40)
	for limit := time.Now().Add(testkit.Patience); ; {
		s.Enter("echo \"size $(stty size)\"\r") // what the shell redraws may overwrite the end of the line
		if size := s.Expect(`size [0-9]+ [0-9]+\r\n`); strings.Contains(size, "40 100") {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("the size stays as it was")
		}
	}

	s.Enter("sleep 1000 &\r")
	s.Expect(`\[1\] [0-9]+`)
	s.Enter("jobs\r")
	s.Expect(`\[1\]\+ +Running +sleep 1000`)
	s.Enter("fg\r")
	s.Expect(`\r\nsleep 1000\r\n`)
	s.Insist("\x1a", `\[1\]\+ +Stopped +sleep 1000`) // Ctrl-Z; bash prints the job before it gives it the terminal
	s.Enter("bg; wait\r")
	s.Expect(`sleep 1000 &`)
	s.Enter("\x03") // Ctrl-C
	s.Expect(`\^C`)
	s.Enter("fg\r")
	s.Expect(`\r\nsleep 1000\r\n`)
	s.Insist("\x03", `\^C(.|\r|\n)*ready> `)
	s.Enter("echo status $?\r")
	s.Expect(`\r\nstatus 130\r\n`)
	if !strings.Contains(p.pwos(t, "status", "--json"), "cannot open pseudo-terminals") {
		s.Enter("tty\r") // it has a name
		s.Expect(`\r\n/dev/pts/[0-9]+\r\n`)
	}
	s.Enter("tty </dev/tty >/dev/null && echo mine\r") // the controlling terminal can be opened
	s.Expect(`\r\nmine\r\n`)

	s.Enter(`read -r -u 3 hello; printf '{"kind":"reply","type":"Syscall.Authenticate","data":null}\n' >&3` + "\r")
	s.Enter(`printf '{"kind":"query","type":"Syscall.Ping","data":{"payload":7},"metadata":{"id":"m","timestamp":0}}\n' >&3; read -r -u 3 answer; echo "${answer:0:60}"` + "\r")
	s.Expect(`\r\n\{"kind":"reply","type":"Syscall.Ping","data":\{"payload":7\}`)

	s.Enter("exit 7\r")
	s.Expect(`pwos: pid [0-9]+ \(shell\) exited 7 after 1 call, 0 refused: pwos audit log --pid [0-9]+`)
	if got := s.Status(); got != 7 {
		t.Errorf("exit status %d", got)
	}
	if after := s.Settings(); after.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) != unix.ICANON|unix.ECHO|unix.ISIG {
		t.Errorf("the terminal's settings are %+v, were %+v", after, usual)
	}
	testkit.Must(t, p.kill())
}

// A program that stops itself also stops pwos run, so that the shell has the terminal, until that continues it. Without a
// shell it continues immediately. A host is a job of its session, so it can stop itself like a job.
func TestTerminalStops(t *testing.T) {
	t.Parallel()
	const stops = `trap "echo continued" CONT; echo begun; kill -$SIGNAL $$; read -r line; echo "got $line"; exit 5`
	for signal, run := range map[string]string{
		"STOP": `pwos run --env SIGNAL -- sh -c "$STOPS"`,
		"TSTP": `printf '#!/bin/sh\n%s\n' "$STOPS" >claude; chmod 755 claude; pwos run --env SIGNAL -- ./claude`,
	} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			bash, err := exec.LookPath("bash")
			if err != nil {
				t.Skip("needs bash")
			}
			p := settle(t)
			cmd := exec.CommandContext(t.Context(), bash, "--noprofile", "--norc", "-i")
			cmd.Env, cmd.Dir = append(p.env(), "TERM=dumb", "PS1=ready> ", "STOPS="+stops, "SIGNAL="+signal, "RUN="+run), t.TempDir()
			s := screen.Sit(t, cmd, testkit.Patience)
			s.Expect("ready> ")
			s.Enter(`eval "$RUN"` + "\r")
			s.Expect(`begun(.|\r|\n)*Stopped(.|\r|\n)*ready> `)
			s.Resize(90, 30)
			s.Enter("echo still here\r")
			s.Expect(`[\r\n]still here\r\n`)
			s.Enter("fg\r")
			s.Expect("continued")
			s.Enter("typed\r")
			s.Expect("got typed")
			s.Expect("ready> ")
			s.Enter("echo status $?; exit\r")
			s.Expect(`[\r\n]status 5\r\n`)
			testkit.Must(t, p.kill())
		})
	}
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		p := settle(t)
		s := sitDown(t, p, "run", "--dir", t.TempDir(), "--env", "SIGNAL=STOP", "--", "sh", "-c", stops)
		s.Expect("begun(.|\r|\n)*continued")
		s.Enter("typed\r")
		s.Expect("got typed")
		if got := s.Status(); got != 5 {
			t.Errorf("exit status %d", got)
		}
		testkit.Must(t, p.kill())
	})
}

// A pwos run that has stopped with its program goes on when the program has ended, however often that was stopped.
func TestStoppedEnds(t *testing.T) {
	t.Parallel()
	p := settle(t)
	t.Cleanup(func() { testkit.Must(t, p.kill()) })
	for name, line := range map[string]struct{ run, want string }{
		"killed": {`setsid pwos run --name killed -- sh -c 'kill -STOP $$' </dev/null >out 2>&1 & job=$!
until grep -q '^State:.T' /proc/$job/status; do sleep 0.05; done; pwos kill killed >/dev/null
timeout 60 tail --pid=$job -f /dev/null || kill -KILL $job; wait $job 2>/dev/null; echo $?`, "143\n"},
		"continued": {`setsid pwos run --name continued -- sh -c '
(while kill -CONT $$; do sleep 0.01; done) & for i in 1 2 3 4 5 6 7 8 9; do kill -STOP $$; done; exit 3' </dev/null >out 2>&1 & job=$!
timeout 60 tail --pid=$job -f /dev/null || kill -KILL $job; wait $job 2>/dev/null; echo $?`, "3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, _ := bash(t, p, t.TempDir(), line.run); !strings.HasSuffix(out, line.want) {
				t.Errorf("got %q", out)
			}
		})
	}
}

// When the kernel dies, its agents do; the terminal is restored, also from changes that the program had no time to undo.
func TestTerminalOfLostKernel(t *testing.T) {
	t.Parallel()
	p := settle(t)
	s := sitDown(t, p, "run", "--dir", t.TempDir(), "--", "sh", "-c",
		`printf '\033[?1049;2004h\033[?25l\033[>1u\033[?1000h\033[?1000lready'; while :; do sleep 1; done`)
	before := s.Settings()
	s.Expect("ready")
	testkit.Must(t, p.kill())
	s.Expect(`\x1b\[<1u\x1b\[\?25h\x1b\[\?1049l\x1b\[\?2004l\x1b\[0m`)
	s.Expect("pwos: .*kernel")
	if got := s.Status(); got != 6 {
		t.Errorf("exit status %d", got)
	}
	if after := s.Settings(); after.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) != unix.ICANON|unix.ECHO|unix.ISIG {
		t.Errorf("the terminal's settings are %+v, were %+v", after, before)
	}
}

// A program that speaks the protocol to the terminal is told of its channel, once, after its end.
func TestStrayFrames(t *testing.T) {
	t.Parallel()
	p := settle(t)
	for _, tty := range []string{"--tty", "--no-tty"} {
		const frame = `{"kind":"query","type":"Syscall.Ping","data":null,"metadata":{"id":"1","timestamp":0}}`
		s := sitDown(t, p, "run", "--own-dir", tty, "--", "sh", "-c", "echo '"+frame+"'; echo '"+frame+"'; echo last")
		said := s.Expect(`(?s).*exited 0 after`)
		if n := strings.Count(said, "pwos: the program writes messages of the protocol to its output"); n != 1 {
			t.Errorf("%s: told %d times: %q", tty, n, said)
		}
		s.Status()
	}
	p.pwos(t, "shutdown")
}

// A program whose terminal is closed gets SIGHUP, however the client ends.
func TestTerminalHangsUp(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*screen.Screen){
		"killed":  func(s *screen.Screen) { s.Signal(syscall.SIGKILL) },
		"hung up": func(s *screen.Screen) { s.HangUp() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := settle(t)
			work := t.TempDir()
			s := sitDown(t, p, "run", "--dir", work, "--", "sh", "-c", `trap "" TERM; trap "echo HUP >said; exit" HUP; echo begun; while :; do sleep 0.1; done`)
			s.Expect("begun")
			end(s)
			s.Status()
			for limit := time.Now().Add(testkit.Patience); ; {
				if out, err := os.ReadFile(work + "/said"); err == nil && string(out) == "HUP\n" && p.pwos(t, "ps") == "" {
					break
				}
				if time.Now().After(limit) {
					t.Fatal("the program still runs")
				}
			}
			testkit.Must(t, p.kill())
		})
	}
}

// Only the operator can pass on standard input and output, at a socket of the runtime directory.
func TestStdioRefused(t *testing.T) {
	t.Parallel()
	p := settle(t)
	for data, want := range map[string]string{
		`{"child_agent_id":"x","command":["true"],"stdio":"kernel.sock"}`:                                    "must be the name of a socket",
		`{"child_agent_id":"x","command":["true"],"stdio":"io-../a"}`:                                        "must be the name of a socket",
		`{"child_agent_id":"x","command":["true"],"stdio":"io-1","restart":"always"}`:                        "must be never with stdio",
		`{"child_agent_id":"x","command":["true"],"stdio":"io-1","channel":"stdio"}`:                         "must be fd3 with stdio",
		`{"child_agent_id":"x","command":["true"],"stdio":"io-1","stderr":"/a"}`:                             "is the caller's with stdio",
		`{"child_agent_id":"x","stdio":"io-1"}`:                                                              "name one with command",
		`{"child_agent_id":"x","command":["true"],"stdio":"io-1","pid":` + spawned(t, p, "agent", "*") + `}`: "only the operator may",
	} {
		_, says, status := p.pwosWith(t, nil, "call", "Syscall.Spawn", "--data", data)
		if status == 0 || !strings.Contains(says, want) {
			t.Errorf("%s: %d, %s", data, status, says)
		}
	}
	// One at which nobody listens: the program does not start.
	p.pwos(t, "call", "Syscall.Spawn", "--data", `{"child_agent_id":"x","command":["true"],"stdio":"io-1"}`)
	if list := p.pwos(t, "ps", "--all", "--json"); !strings.Contains(list, "reach caller") {
		t.Error(list)
	}
	testkit.Must(t, p.kill())
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

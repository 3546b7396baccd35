// Package hostile_test tests the limits of what one agent can do to a kernel with concurrent attacks (docs/agents.md).
package hostile_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

const (
	maxMemory = 256 << 20              // of the daemon, resident, at any time
	maxAnswer = time.Second            // of `pwos ps` and `pwos kill`
	maxPing   = 50 * time.Millisecond  // 99 of 100, on another connection
	look      = 250 * time.Millisecond // between two checks of the daemon
	patience  = 2 * time.Minute        // limit of one command; not a measurement

	otherUID = 61_234 // user of the kernel if the test runs as root
	pingName = "ping" // the argument that makes the test binary the other connection
)

// TestMain runs the agent, the other connection, or the tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case attackName:
			os.Exit(attack(os.Args[2], strings.Join(os.Args[3:], "")))
		case pingName:
			os.Exit(pingUntilKilled(os.Args[2]))
		}
	}
	os.Exit(testkit.Main(m))
}

// TestHostileAgent: during the attacks of an agent, the kernel runs within its memory, other connections are served, and
// the operator can see and end processes. All processes that the agent has started end with it.
func TestHostileAgent(t *testing.T) {
	during, long := time.Duration(testkit.Rounds(2, 5, 60))*time.Second, os.Getenv("PWOS_LONG") != ""
	uids := map[string]int{"unprivileged": os.Getuid()}
	if os.Getuid() == 0 {
		uids = map[string]int{"root": 0, "unprivileged": otherUID}
	}
	for name, uid := range uids {
		t.Run(name, func(t *testing.T) {
			if !long { // times are not checked
				t.Parallel()
			}
			s := newScene(t, uid)
			agent := s.run("--allow", "Syscall.Ping", "--dir", s.path("work"), "--", s.path("work/hostile"), attackName, s.home)
			s.await("the agent's processes", func() bool { return len(s.processes()) > 10 })
			ping := s.command(s.path("hostile"), pingName, s.home)
			var pings bytes.Buffer
			ping.Stdout, ping.Stderr = &pings, &pings
			testkit.Must(t, ping.Start())
			t.Cleanup(func() { _ = ping.Process.Kill() }) // if the test has failed
			var ps, kills []time.Duration
			for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(look) {
				s.checkMemory()
				ps = append(ps, s.timed("ps"))
				victim := s.run("--own-dir", "--", "sleep", "1000")
				kills = append(kills, s.timed("kill", victim))
			}
			testkit.Must(t, ping.Process.Signal(syscall.SIGTERM))
			testkit.Must(t, ping.Wait())
			kills = append(kills, s.timed("kill", agent))
			if left := s.processes(); len(left) > 0 {
				t.Errorf("after the kill there are still %q", left)
			}
			s.checkMemory()
			var p99 time.Duration
			if _, err := fmt.Sscanf(lastLine(pings.String()), "p99 %d ns", &p99); err != nil {
				t.Fatalf("the other connection printed %q", pings.String())
			}
			t.Logf("other connection: %s", pings.String())
			t.Logf("pwos ps: %v at most, of %d; pwos kill: %v at most, of %d; most memory %d MiB", slices.Max(ps), len(ps), slices.Max(kills), len(kills), s.most>>20)
			if long && (slices.Max(ps) > maxAnswer || slices.Max(kills) > maxAnswer) {
				t.Errorf("pwos ps or pwos kill took longer than %v", maxAnswer)
			}
			if long && p99 > maxPing {
				t.Errorf("99 of 100 pings took up to %v, want %v", p99, maxPing)
			}
			s.life.Stop(t) // and has ended cleanly
		})
	}
}

// scene is a kernel in signature mode with its home directory and its user.
type scene struct {
	t    *testing.T
	home string
	as   *syscall.SysProcAttr
	life *testkit.Process
	most int // most resident bytes at one time
}

func newScene(t *testing.T, uid int) *scene {
	t.Helper()
	s := &scene{t: t, home: testkit.Dir(t)}
	testkit.Must(t, os.Mkdir(s.path("work"), 0o700))
	self, err := os.Executable()
	testkit.Must(t, err)
	binary, err := os.ReadFile(self)
	testkit.Must(t, err)
	key := testkit.NewKey(t, s.path("key"))
	for name, content := range map[string][]byte{
		"config.toml": nil, "authorized_keys": ssh.MarshalAuthorizedKey(key), "hostile": binary, "work/hostile": binary,
	} {
		testkit.Must(t, os.WriteFile(s.path(name), content, 0o600))
	}
	testkit.Must(t, os.Chmod(s.path("hostile"), 0o700))
	testkit.Must(t, os.Chmod(s.path("work/hostile"), 0o700))
	if uid != os.Getuid() {
		s.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		for _, name := range []string{".", "work", "config.toml", "key", "authorized_keys", "hostile", "work/hostile"} {
			testkit.Must(t, os.Chown(s.path(name), uid, uid))
		}
	}
	d := testkit.Daemon{Command: []string{testkit.Program(t, "pwosd")}, Dir: s.home, Env: []string{"PATH=" + os.Getenv("PATH")}, As: s.as}
	s.life = d.Start(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", lastLines(s.life.Output(), 20))
		}
	})
	return s
}

func (s *scene) path(name string) string { return filepath.Join(s.home, name) }

// command returns a program of the kernel's user.
func (s *scene) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = s.as
	cmd.Dir = s.home
	cmd.Env = []string{
		"HOME=" + s.home, "PWOS_RUNTIME_DIR=" + s.path("r"), "PWOS_STATE_DIR=" + s.path("s"), "PWOS_CONFIG=" + s.path("config.toml"),
		"PWOS_IDENTITY=" + s.path("key"), "PATH=" + os.Getenv("PATH"),
	}
	return cmd
}

// pwos runs the command line, which must succeed, and returns its output.
func (s *scene) pwos(args ...string) string {
	s.t.Helper()
	cmd := s.command(testkit.Program(s.t, "pwos"), append([]string{"--timeout=" + patience.String()}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("pwos %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(string(out))
}

// timed is pwos, and returns the time that it took.
func (s *scene) timed(args ...string) time.Duration {
	s.t.Helper()
	begin := time.Now()
	s.pwos(args...)
	return time.Since(begin)
}

// run starts an agent and returns its PID.
func (s *scene) run(args ...string) string {
	s.t.Helper()
	return s.pwos(append([]string{"run", "-d"}, args...)...)
}

// processes returns all processes of the agent in the system.
func (s *scene) processes() (found []string) {
	s.t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	testkit.Must(s.t, err)
	for _, name := range list {
		line, err := os.ReadFile(name) // it may have ended
		if err == nil && bytes.HasPrefix(line, []byte(s.path("work/hostile")+"\x00")) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// checkMemory fails the test if the daemon has ended, or has too much memory.
func (s *scene) checkMemory() {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.life.PID()))
	testkit.Must(s.t, err)
	for line := range strings.Lines(string(text)) {
		value, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		kb, err := strconv.Atoi(strings.Fields(value)[0])
		testkit.Must(s.t, err)
		if s.most = max(s.most, kb<<10); kb<<10 > maxMemory {
			s.t.Fatalf("the daemon has %d MiB resident, want at most %d", kb>>10, maxMemory>>20)
		}
		return
	}
	s.t.Fatal("the daemon has ended")
}

func (s *scene) await(what string, holds func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within the limit: %s; the agent has the processes %q", what, s.processes())
		}
	}
}

// pingUntilKilled is the other connection: it prints the times of its pings when it is told to end.
func pingUntilKilled(home string) int {
	ctx := context.Background()
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	c, err := client.Dial(ctx, client.Options{RuntimeDir: filepath.Join(home, "r"), Patience: patience})
	if err != nil {
		fmt.Println("connect:", err)
		return 1
	}
	defer c.Close()
	var took []time.Duration
	for {
		select {
		case <-end:
			slices.Sort(took)
			if len(took) == 0 {
				return 1
			}
			fmt.Printf("%d pings, p50 %v, p99 %v, at most %v\n", len(took), took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
			fmt.Printf("p99 %d ns\n", took[len(took)*99/100])
			return 0
		case <-time.After(2 * time.Millisecond):
		}
		begin := time.Now()
		if _, err := c.Do(ctx, schema.Message{Kind: schema.KindQuery, Type: "Syscall.Ping", Data: []byte(`{"payload":1}`)}); err != nil {
			fmt.Println("ping:", err)
			return 1
		}
		took = append(took, time.Since(begin))
	}
}

func lastLine(text string) string { return lastLines(text, 1) }

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

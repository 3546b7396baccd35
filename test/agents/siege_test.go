package agents_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// besiege starts children that use up the kernel's socket: "hold" keeps connections open, which are silent or send requests
// and read no answer; "storm" opens connections without using them.
func besiege(args []string) int {
	for range 4 {
		if _, err := again("besieger", args[0], args[1]); err != nil {
			return failed(err)
		}
	}
	return idle(nil)
}

// besieger is one of the children.
func besieger(args []string) int {
	how, socket := args[0], args[1]
	if how == "storm" {
		for {
			fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			if err != nil {
				return failed(err)
			}
			_ = syscall.Connect(fd, &syscall.SockaddrUnix{Name: socket})
			_ = syscall.Close(fd)
		}
	}
	var all []net.Conn // prevents garbage collection from closing them
	for i := 0; len(all) < 500; i++ {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		all = append(all, conn)
		if i%2 == 0 {
			go unreadOn(conn)
		}
	}
	return idle(nil)
}

// unreadOn sends requests without reading an answer.
func unreadOn(conn net.Conn) {
	c, err := greet(conn, conn)
	for payload := strings.Repeat("p", 15<<10); err == nil; {
		err = c.send("query", "Syscall.Ping", fmt.Sprintf(`{"payload":%q}`, payload))
	}
}

// pingAlone grants nothing that processes without a token may not do.
const pingAlone = `,"capabilities":{"allowed_syscalls":["Syscall.Ping"]}`

// launchPoor is launch with few descriptors.
func (p *place) launchPoor(t *testing.T, descriptors int) *testkit.Process {
	t.Helper()
	return p.launchAs(t, "/bin/sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0"`, descriptors), self(t))
}

// Whatever the processes of agents do with the kernel's socket, the operator is served, other agents work, the kernel does
// not grow, entries are journaled, and the agents can be ended. Three of them have more connections than the kernel has
// descriptors.
func TestSiege(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	daemon := p.launchPoor(t, 200)
	c := p.dial(t)
	var bad []int64
	for range 3 {
		bad = append(bad, c.spawn(t, pingAlone, "besiege", "hold", p.Socket()))
	}
	testkit.Eventually(t, "refused connections", func() bool { return strings.Contains(daemon.Output(), "connections of an agent are refused") })
	for i := range 20 {
		operator := p.dialPatiently(t)
		operator.must(t, "query", "Process.List", `{}`, nil)
		operator.must(t, "command", "Memory.Set", fmt.Sprintf(`{"key":"siege","value":%d}`, i), nil)
		operator.close()
	}
	good := c.spawn(t, allowAll, "ping")
	if d := c.awaitGone(t, good); number(d.Exit.Code) != 0 {
		t.Errorf("another agent ended as %+v", d.Exit)
	}
	most := 128 // MB; without a bound it was 989
	if testkit.RaceDetector() {
		most *= 6
	}
	if used := residentMB(t, daemon.PID()); used > most {
		t.Errorf("the daemon has grown to %d MB", used)
	}
	// 32 connections of each, the hosted channels, and the daemon's own descriptors.
	if got := sockets(t, daemon.PID()); got > 3*32+20 {
		t.Errorf("the daemon has %d sockets", got)
	}
	for _, pid := range bad {
		c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
		c.awaitGone(t, pid)
	}
}

// dialPatiently is dial for a listen queue that may be full.
func (p *place) dialPatiently(t *testing.T) (c *client) {
	t.Helper()
	testkit.Eventually(t, "room in the listen queue", func() bool {
		var err error
		if c, err = dialSocket(p.Socket()); err != nil && !errors.Is(err, syscall.EAGAIN) {
			t.Fatal(err)
		}
		return err == nil
	})
	return c
}

// sockets counts the open sockets of a process.
func sockets(t *testing.T, osPID int) (n int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", osPID)
	files, err := os.ReadDir(dir)
	testkit.Must(t, err)
	for _, f := range files {
		link, err := os.Readlink(filepath.Join(dir, f.Name()))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if strings.HasPrefix(link, "socket:") {
			n++
		}
	}
	return n
}

// An agent that floods the socket with connections is suspended repeatedly; meanwhile the operator is served.
func TestStorm(t *testing.T) {
	t.Parallel()
	p, daemon := start(t)
	c := p.dial(t)
	bad := c.spawn(t, pingAlone, "besiege", "storm", p.Socket())
	testkit.Eventually(t, "suspensions", func() bool {
		operator := p.dialPatiently(t)
		operator.must(t, "query", "Process.List", `{}`, nil)
		operator.close()
		return strings.Count(daemon.Output(), "agent is suspended") > 1
	})
	c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, bad), nil)
	c.awaitGone(t, bad)
}

// Calls of an agent fill the journal no faster than the configuration allows, answered or refused. Further calls get 429,
// and the journal has their number.
func TestJournalOfAnAgentIsBounded(t *testing.T) {
	t.Parallel()
	for name, capabilities := range map[string]string{"ping alone": pingAlone, "nothing": `,"capabilities":{"allowed_syscalls":[]}`} {
		for _, program := range []string{"flood", "refused"} {
			t.Run(program+", granted "+name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				testkit.WriteFile(t, p.Path("config.toml"), settings+"journal_bytes_per_second = 65536\njournal_burst_bytes = 65536\n")
				began := time.Now()
				p.launch(t)
				c := p.dial(t)
				bad := c.spawn(t, capabilities, program, "2000") // which exceeds the bound with 30 calls a second
				var log struct {
					Entries []struct {
						Type    string
						Payload struct{ PID, Count int64 }
					}
				}
				testkit.Eventually(t, "notes about throttled calls", func() bool {
					c.must(t, "query", "Audit.Log", fmt.Sprintf(`{"pid":%d,"type":"Kernel.Throttled"}`, bad), &log)
					return len(log.Entries) >= 2
				})
				if e := log.Entries[0]; e.Type != "Kernel.Throttled" || e.Payload.PID != bad || e.Payload.Count < 1 {
					t.Errorf("the note is %+v", e)
				}
				text, err := journal(p.Path("s/journal"))
				testkit.Must(t, err)
				own := 0
				for line := range strings.Lines(text) {
					if bytes.Contains([]byte(line), fmt.Appendf(nil, `,"pid":%d,`, bad)) {
						own += len(line)
					}
				}
				if most := int(time.Since(began).Seconds()+2) * 65536 * 3 / 2; own > most {
					t.Errorf("%s has written %d bytes to the journal, want %d at most", program, own, most)
				}
				c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, bad), nil)
				c.awaitGone(t, bad)
			})
		}
	}
}

// refused sends commands of some size that it was not granted, and reads the answers.
func refused(args []string) int {
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	size, _ := strconv.Atoi(args[0])
	data := fmt.Sprintf(`{"key":"k","value":%q}`, strings.Repeat("v", size))
	for {
		if _, err := c.call("command", "Memory.Set", data); err == nil {
			return failed(errors.New("it was allowed"))
		}
	}
}

package agents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// entry is an entry of the audit log.
type entry struct {
	Seq       int64  `json:"seq"`
	Type      string `json:"type"`
	ID        string `json:"id"`
	Causation string `json:"causation"`
	PID       int64  `json:"pid"`
}

func (c *client) log(t *testing.T) (all []entry) {
	t.Helper()
	for since := int64(0); ; {
		var page struct {
			Entries []entry `json:"entries"`
			Next    int64   `json:"next"`
		}
		c.must(t, "query", "Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":20}`, since), &page)
		all = append(all, page.Entries...)
		if since = page.Next; since == 0 {
			return all
		}
	}
}

// The events of a program are in the journal, each with its cause.
func TestLifeIsJournaled(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	c.awaitGone(t, c.spawn(t, allowAll, "exit", "0"))
	idle := c.spawn(t, allowAll, "idle")
	c.must(t, "command", "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, idle), nil)
	all := c.log(t)
	byID := make(map[string]entry)
	for _, e := range all {
		byID[e.ID] = e
	}
	var chains []string
	for _, e := range all {
		if e.Type != "Process.NoteEnd" {
			continue
		}
		chain := e.Type
		for e.Causation != "" {
			cause, ok := byID[e.Causation]
			if !ok {
				break // the call itself: its id is from the client
			}
			chain += " < " + cause.Type
			e = cause
		}
		chains = append(chains, chain)
	}
	want := []string{
		"Process.NoteEnd < Process.NoteStart < Syscall.Spawn",
		"Process.NoteEnd < Process.Exit < Syscall.Terminate",
	}
	if !slices.Equal(chains, want) {
		t.Errorf("the causes of the ends are\n%s\nwant\n%s", strings.Join(chains, "\n"), strings.Join(want, "\n"))
	}
}

// When a program starts, its spawn is on disk; when it sends its first frame, its start is on disk.
func TestIntentComesFirst(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	for range 5 {
		pid := c.spawn(t, allowAll+`,"sandbox":"off"`, "witness", p.Path("s/journal"))
		if d := c.awaitGone(t, pid); number(d.Exit.Code) != 0 {
			t.Errorf("the witness ended with %+v\n%s", d.Exit, testkit.ReadFile(t, p.Path(fmt.Sprintf("s/agents/%d/stderr.log", pid))))
		}
	}
}

// Frames that an agent sent before its end are read, although it does not wait for an answer.
func TestLastWordsAreHeard(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := p.dial(t)
	pid := c.spawn(t, allowAll, "hasty", "200")
	c.awaitGone(t, pid)
	if got := c.awaitKey(t, "hasty"); got != "199" {
		t.Errorf("of the frames 0 to 199 the last one that was read is %s", got)
	}
}

// A daemon with an idle timeout waits for its agents.
func TestAgentsAreSomebody(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	daemon, c := p.launchIdle(t)
	pid := c.spawn(t, allowAll, "doze")
	c.close()
	daemon.Wait(t)
	testkit.WriteFile(t, p.Path("config.toml"), settings)
	p.launch(t)
	if d := p.dial(t).get(t, pid); d.reason() != "exited" {
		t.Errorf("the daemon did not wait for the agent: %+v", d.Exit)
	}
}

// launchIdle starts a daemon that ends soon after the client that has connected to it has disconnected. On a busy machine
// one may end before there is a client; the next one has more time.
func (p *place) launchIdle(t *testing.T) (*testkit.Process, *client) {
	t.Helper()
	for idle := 50 * time.Millisecond; idle < testkit.Patience; idle *= 2 {
		testkit.WriteFile(t, p.Path("config.toml"), fmt.Sprintf("idle_timeout = %q\n", idle)+settings)
		daemon := p.launch(t)
		if c, err := dialSocket(p.Socket()); err == nil {
			t.Cleanup(c.close)
			return daemon, c
		}
		daemon.Wait(t)
	}
	t.Fatal("each daemon ended before a client had connected: the machine is too busy")
	return nil, nil
}

package crash_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// askingRules ask before every call of the agents in TestApprovalsKilled.
const askingRules = `@id("asks") @ask("24h") forbid(principal, action == Syscall::"Ipc.Broadcast", resource);`

const askers = 8

// asker is an agent that makes one call after the other, each of which needs approval. It repeats each call until it is
// done.
type asker struct {
	place *testkit.Place
	pid   int64
	want  int // number of the call that it makes; each is broadcast with its number
}

// TestApprovalsKilled kills the daemon at random moments while calls wait for approvals, while some are approved, and while
// they run: a call that was not approved has not run, an approved call has run at most once, and a waiting call still
// waits. PWOS_LONG=1 does it 50 times.
func TestApprovalsKilled(t *testing.T) {
	t.Parallel()
	rounds := testkit.Rounds(3, 10, 50)
	chance := rand.New(rand.NewPCG(1, 14))
	p := newPlace(t)
	for name, text := range map[string]string{"policy.cedar": askingRules, "config.toml": settings + "[approval]\nwait = \"1h\"\n"} {
		testkit.Must(t, os.WriteFile(p.Path(name), []byte(text), 0o600))
	}
	d := daemonAt(t, p).Start(t)
	agents := spawnAskers(t, p)
	approved := make(map[string]bool) // questions that the test has approved, whether the kernel got the approval or not
	done := func() (n int) {          // the number of calls that are known to be done
		for _, a := range agents {
			n += a.want
		}
		return n
	}
	// On a slow machine all of a few kills may come before the first call is done.
	round := 0
	for ; round < rounds || (done() == 0 && round < 20*rounds); round++ {
		var calls sync.WaitGroup
		for _, a := range agents {
			calls.Go(func() { a.run(t) })
		}
		waiting := approveSome(t, p, chance, approved)
		wait(time.Duration(chance.Int64N(int64(6 * time.Millisecond))))
		d.Kill(t)
		calls.Wait()
		checkApprovals(t, p, approved, waiting)
		d = daemonAt(t, p).Start(t)
		checkWaiting(t, p, waiting)
		if t.Failed() {
			d.Kill(t)
			t.Fatalf("round %d: the daemon's output:\n%.4000s", round, d.Output())
		}
	}
	t.Logf("%d kills, %d approved, %d calls known to be done", round, len(approved), done())
	if len(approved) < rounds || done() == 0 {
		t.Errorf("%d approved, %d done: too few for the kills to show anything", len(approved), done())
	}
}

func spawnAskers(t *testing.T, p *testkit.Place) []*asker {
	t.Helper()
	c, err := dial(p)
	testkit.Must(t, err)
	defer c.end(nil)
	agents := make([]*asker, askers)
	for i := range agents {
		var out struct {
			ChildPID int64 `json:"child_pid"`
		}
		testkit.Must(t, c.call("command", "Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"asker-%d","capabilities":{"allowed_syscalls":["*"]}}`, i), &out))
		agents[i] = &asker{place: p, pid: out.ChildPID}
	}
	return agents
}

// run makes the call of a, and the next ones, until the kernel has ended.
func (a *asker) run(t *testing.T) {
	c, err := dial(a.place)
	if err != nil {
		return
	}
	defer c.end(nil)
	for {
		if err := c.write(frame("command", "Ipc.Broadcast", fmt.Sprintf(`{"pid":%d,"payload":%d}`, a.pid, a.want), "")); err != nil {
			return
		}
		answer, err := c.next()
		if err != nil {
			return // it may be done: the next kernel is asked for the same
		}
		if answer.Kind != "reply" {
			t.Errorf("pid %d: %s", a.pid, answer.Data)
			return
		}
		a.want++
	}
}

// asked is a question, with what this test needs.
type asked struct{ ID string }

// approveSome waits until all agents wait, and approves some of their calls. It returns the others.
func approveSome(t *testing.T, p *testkit.Place, chance *rand.Rand, approved map[string]bool) map[string]bool {
	t.Helper()
	c, err := dial(p)
	testkit.Must(t, err)
	defer c.end(nil)
	var list []asked
	for begun := time.Now(); len(list) < askers; list = waitingOf(t, c) {
		if time.Since(begun) > testkit.Patience {
			t.Fatalf("%d agents wait", len(list))
		}
		wait(time.Millisecond)
	}
	left := make(map[string]bool)
	var frames strings.Builder
	for _, q := range list {
		if chance.IntN(2) == 0 {
			left[q.ID] = true
			continue
		}
		approved[q.ID] = true
		frames.WriteString(frame("command", "Approval.Decide", fmt.Sprintf(`{"id":%q,"decision":"approve"}`, q.ID), ""))
	}
	testkit.Must(t, c.write(frames.String()))
	return left
}

func waitingOf(t *testing.T, c *client) []asked {
	t.Helper()
	var out struct{ Approvals []asked }
	testkit.Must(t, c.call("query", "Approval.List", `{"state":"waiting"}`, &out))
	return out.Approvals
}

// checkWaiting checks that calls without an approval still wait.
func checkWaiting(t *testing.T, p *testkit.Place, waiting map[string]bool) {
	t.Helper()
	c, err := dial(p)
	testkit.Must(t, err)
	defer c.end(nil)
	still := make(map[string]bool)
	for _, q := range waitingOf(t, c) {
		still[q.ID] = true
	}
	for id := range waiting {
		if !still[id] {
			t.Errorf("question %s is lost", id)
		}
	}
}

// checkApprovals reads the journal: the entry of each call that has run follows its approval, no approval allows two calls,
// and all approvals are from this test.
func checkApprovals(t *testing.T, p *testkit.Place, approved, waiting map[string]bool) {
	t.Helper()
	decided, ran := make(map[string]bool), make(map[string]bool)
	for _, e := range entriesOf(t, p) {
		var data asked
		switch e.Request.Type {
		case "Approval.Decide":
			testkit.Must(t, json.Unmarshal(e.Request.Data, &data))
			decided[data.ID] = e.Outcome.Kind == "reply"
		case "Ipc.Broadcast":
			id := e.Outcome.Approved.Approval
			switch {
			case e.Outcome.Kind != "reply":
			case !decided[id] || !approved[id]:
				t.Errorf("entry %d ran without an approval: %q", e.Seq, id)
			case ran[id]:
				t.Errorf("entry %d ran by the approval %s, as another did", e.Seq, id)
			case waiting[id]:
				t.Errorf("entry %d ran while its question waits", e.Seq)
			}
			ran[id] = ran[id] || e.Outcome.Kind == "reply"
		}
	}
}

// approvalEntry is an entry of the journal, with what this test needs.
type approvalEntry struct {
	Seq     uint64
	Request answer
	Outcome struct {
		Kind     string
		Approved struct{ Approval string }
	}
}

// entriesOf reads the journal. Its last line may be torn, since it was not acknowledged.
func entriesOf(t *testing.T, p *testkit.Place) (list []approvalEntry) {
	t.Helper()
	r := journal.NewReader(journal.OSFS{}, p.Path("s/journal"), journal.ReaderOptions{})
	defer r.Close()
	for {
		record, err := r.Next(t.Context())
		if err != nil {
			return list
		}
		e := approvalEntry{Seq: record.Seq}
		testkit.Must(t, errors.Join(json.Unmarshal(record.Request, &e.Request), json.Unmarshal(record.Outcome, &e.Outcome)))
		list = append(list, e)
	}
}

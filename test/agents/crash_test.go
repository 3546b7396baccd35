package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// A daemon that is killed repeatedly leaves no process of its agents running, also after forks. The next one has the
// correct state of them, and restarts those whose policy says so.
func TestDaemonKilled(t *testing.T) {
	t.Parallel()
	rounds := testkit.Rounds(2, 3, 100)
	p := newPlace(t)
	var kept []int64 // agents that every daemon restarts
	var never int64  // one that is not restarted
	began := time.Now()
	for round := range rounds {
		daemon := p.launch(t)
		c := p.dial(t)
		if round > 0 {
			d := c.awaitState(t, never, "TERMINATED")
			if d.reason() != "unknown" || d.OSPID != nil || *d.Restarts != 0 {
				t.Errorf("round %d: the program without a restart policy is %+v, %+v", round, d, d.Exit)
			}
		} else {
			for _, restart := range []string{"always", "on-failure"} {
				kept = append(kept, c.spawn(t, allowAll+fmt.Sprintf(`,"restart":%q`, restart), "forking"))
			}
		}
		never = c.spawn(t, allowAll, "forking")
		var all []int
		for _, pid := range kept {
			var d descriptor
			testkit.Eventually(t, fmt.Sprintf("round %d: pid %d runs, restarted %[1]d times", round, pid), func() bool {
				d = c.get(t, pid) // it may describe the previous run, until that is recorded to have ended
				return d.State == "RUNNING" && *d.Restarts == int64(round)
			})
			if round > 0 && d.reason() != "unknown" {
				t.Errorf("round %d: pid %d last ended as %+v", round, pid, d.Exit)
			}
			all = append(all, c.awaitForked(t, pid, *d.OSPID)...)
		}
		all = append(all, c.awaitForked(t, never, *c.get(t, never).OSPID)...)
		if slices.ContainsFunc(all, func(osPID int) bool { return !testkit.Alive(osPID) }) {
			t.Fatalf("round %d: not all of %v run: the test shows nothing", round, all)
		}
		daemon.Kill(t)
		testkit.Eventually(t, "the end of all processes that the agents had started", func() bool { return !slices.ContainsFunc(all, testkit.Alive) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%d rounds in %v", rounds, time.Since(began).Round(time.Millisecond))
	p.launch(t)
	var verdict struct {
		OK bool `json:"ok"`
	}
	if p.dial(t).must(t, "query", "Audit.Verify", `{}`, &verdict); !verdict.OK {
		t.Error("the journal is broken")
	}
}

// awaitForked waits until the program whose first process is osPID has forked, and returns all its processes.
func (c *client) awaitForked(t *testing.T, pid int64, osPID int) (all []int) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("forks of pid %d", pid), func() bool {
		var now forked
		text := c.awaitKey(t, fmt.Sprintf("forked/%d", pid))
		place, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", osPID))
		if json.Unmarshal([]byte(text), &now) != nil || len(now.Numbers) != 4 || now.Place != place { // of the previous run
			return false
		}
		all = nil
		for _, number := range now.Numbers {
			all = append(all, testkit.Outside(t, osPID, number))
		}
		return all[0] == osPID
	})
	return all
}

package kernel_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestCompareAndSetHasOneWinner: of concurrent callers that expect the same value exactly one writes.
func TestCompareAndSetHasOneWinner(t *testing.T) {
	t.Parallel()
	d := start(t)
	first, second := d.dial(t), d.dial(t)
	for round := range 100 {
		data := fmt.Sprintf(`{"key":"turn/%d","value":%%q}`, round)
		var all sync.WaitGroup
		var wins atomic.Int64
		for name, c := range map[string]*client{"first": first, "second": second} {
			all.Go(func() {
				if a := c.ask("Memory.CompareAndSet", fmt.Sprintf(data, name)); a.Kind == "reply" {
					wins.Add(1)
				}
			})
		}
		if all.Wait(); wins.Load() != 1 {
			t.Fatalf("round %d: %d of two callers created the key", round, wins.Load())
		}
	}
}

// TestCompareAndSetCounts: the increments of independent callers are all counted, and the sum survives a restart.
func TestCompareAndSetCounts(t *testing.T) {
	t.Parallel()
	callers, increments := 8, testkit.Rounds(30, 125, 125)
	d := start(t)
	d.dial(t).call("Memory.Set", `{"key":"n","value":0}`, nil)
	var all sync.WaitGroup
	for range callers {
		c := d.dial(t)
		all.Go(func() {
			for done := 0; done < increments; {
				var n int
				if _, err := fmt.Sscan(string(c.ask("Memory.Get", `{"key":"n"}`).Data), &n); err != nil {
					t.Error(err)
					return
				}
				if c.ask("Memory.CompareAndSet", fmt.Sprintf(`{"key":"n","expected":%d,"value":%d}`, n, n+1)).Kind == "reply" {
					done++
				}
			}
		})
	}
	all.Wait()
	for range 2 {
		if got := d.dial(t).call("Memory.Get", `{"key":"n"}`, nil).Data; string(got) != fmt.Sprint(callers*increments) {
			t.Errorf("counted %s of %d", got, callers*increments)
		}
		d.restart(t)
	}
}

// TestCompareAndSetOnce: with an idempotency key it runs once, and its success or refusal is repeated in either dialect,
// also after a restart.
func TestCompareAndSetOnce(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dialOn(t, "events.sock")
	const create, refused = `{"key":"k","value":1}`, `{"key":"k","expected":7,"value":2}`
	const typ, won, lost = "Memory.CompareAndSet", `,"idempotencyKey":"won"`, `,"idempotencyKey":"lost"`
	for range 2 {
		for _, dialect := range dialects() {
			if a := c.speak(dialect, typ, create, won); a.Kind != "reply" || string(a.Data) != `{"success":true}` {
				t.Errorf("%s: %s", dialect, a.Data)
			}
			code := map[schema.Dialect]any{schema.OsMessage: 409.0, schema.OsEvent: "CONFLICT"}[dialect]
			if a := c.speak(dialect, typ, refused, lost); c.failure(a).Code != code || !strings.Contains(string(a.Data), "another value") {
				t.Errorf("%s: %s", dialect, a.Data)
			}
			if a := c.speak(dialect, typ, refused, lost); dialect == schema.OsEvent && !strings.Contains(string(a.Data), `"details":{"field":"expected","key":"/k"}`) {
				t.Errorf("%s: %s", dialect, a.Data)
			}
		}
		c.call("Memory.Set", `{"key":"k","value":7}`, nil) // the refusal stays the same
		d.restart(t)
		c = d.dialOn(t, "events.sock")
	}
	if got := c.call("Memory.Get", `{"key":"k"}`, nil).Data; string(got) != "7" {
		t.Errorf("the key holds %s: a repetition ran", got)
	}
}

// TestRefusedVaultWriteLeavesNoTrace: a refused value under vault/ may be a secret that was never sealed.
func TestRefusedVaultWriteLeavesNoTrace(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	c.refused(422, "Memory.CompareAndSet", `{"key":"vault/k","value":"swordfish-1"}`, "pwenc:v1:")
	c.refused(409, "Memory.CompareAndSet", `{"key":"vault/k","expected":"swordfish-2","value":"pwenc:v1:x"}`, "is not there")
	d.restart(t)
	if found := testkit.FilesWith(t, "swordfish", d.cfg.StateDir); found != nil {
		t.Errorf("%v hold what was refused", found)
	}
}

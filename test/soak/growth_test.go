package soak_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// growth is a kind of state that clients can make grow.
type growth struct {
	what string
	line func(c *conn, i int) // queues the frame that creates the i-th one
	undo func(c *conn)        // queues frames that remove all of them; nil: not possible
	most int64                // bytes that each may still take at the end; 0: it is kept by design, and only measured
}

// TestGrowth measures how much memory each kind of state keeps. Some of it is kept by design, bounded by what clients choose
// to keep; everything else must be released.
func TestGrowth(t *testing.T) {
	n := testkit.Rounds(600, 600, 50_000)
	p := newPlace(t)
	stop := p.start(t)
	crew(t, p)
	fill(t, p)
	stop()
	p.start(t)
	grow(t, p, growths()[0], 0, n)
	p.indexing(t)
	for _, g := range growths() {
		grow(t, p, g, 0, n/10) // memory that the first of a kind allocates for all does not count
		before := p.quiet(t, p.read(t)).heap
		grow(t, p, g, n/10, n)
		each := (p.quiet(t, p.read(t)).heap - before) / int64(n-n/10)
		if g.undo == nil {
			t.Logf("%s: %d bytes each", g.what, each)
		} else {
			took := each
			grow(t, p, growth{line: func(c *conn, _ int) { g.undo(c) }}, 0, 1)
			each = (p.quiet(t, p.read(t)).heap - before) / int64(n-n/10)
			t.Logf("%s: %d bytes each, %d after removal", g.what, took, each)
		}
		if g.most > 0 && each > g.most+noise/int64(n) {
			t.Errorf("%s: %d bytes each remain, want at most %d", g.what, each, g.most)
		}
	}
}

// grow creates more of a kind of state, on one connection.
func grow(t *testing.T, p *place, g growth, from, to int) {
	t.Helper()
	c, err := p.dial()
	testkit.Must(t, err)
	for i := from; i < to && err == nil; i++ {
		if g.line(c, i); i%50 == 49 || i == to-1 {
			_, err = c.flush()
		}
	}
	if err := c.end(err); err != nil {
		t.Fatalf("%s: %v", g.what, err)
	}
}

func growths() []growth {
	// The process is that of the first agent, which may do all of this.
	const pid = 1
	return []growth{
		{what: "a query", line: func(c *conn, _ int) { c.ask(0, "Syscall.Ping", `{"payload":1}`) }, most: 8},
		{what: "a command", line: func(c *conn, _ int) { c.ask(0, "Memory.Set", `{"key":"a","value":1}`) }, most: 8},
		{what: "an error", line: func(c *conn, i int) { c.ask(404, fmt.Sprintf("Nobody.Knows%d", i), `{}`) }, most: 8},
		{what: "a key of 10 bytes with a value of 10", line: func(c *conn, i int) {
			c.ask(0, "Memory.Set", fmt.Sprintf(`{"key":"grow/%05d","value":"%08d"}`, i, i))
		}},
		{what: "an idempotency key of 8 bytes, for 24 hours", line: func(c *conn, i int) {
			c.askWith(0, "Memory.Set", `{"key":"a","value":1}`, fmt.Sprintf(`,"idempotencyKey":"key%05d"`, i))
		}},
		{what: "a delta", line: func(c *conn, i int) {
			c.ask(0, "Syscall.CommitDelta", fmt.Sprintf(`{"pid":%d,"changes":{"k":%d}}`, pid, i))
		}, undo: func(c *conn) { // what was rolled back is freed by the next commit
			for range 2 {
				c.ask(0, "Syscall.Rollback", fmt.Sprintf(`{"pid":%d,"to_tick":0}`, pid))
				c.ask(0, "Syscall.CommitDelta", fmt.Sprintf(`{"pid":%d,"changes":{"k":1}}`, pid))
			}
		}, most: 8},
		{what: "an agent whose only delta was rolled back", line: func(c *conn, i int) {
			c.ask(0, "Syscall.CommitDelta", fmt.Sprintf(`{"agent_id":"grow-%05d","changes":{"k":%d}}`, i, i))
			c.ask(0, "Syscall.Rollback", fmt.Sprintf(`{"agent_id":"grow-%05d","to_tick":0}`, i))
		}},
		{what: "a checkpoint", line: func(c *conn, _ int) { c.ask(0, "Syscall.Checkpoint", fmt.Sprintf(`{"pid":%d}`, pid)) }, most: 8},
	}
}

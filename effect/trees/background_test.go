package trees_test

import "testing"

// TestBackgroundEnds: what a call leaves running, and ends before anybody looks again, is the agent's background.
func TestBackgroundEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.begin(1, "u1")
	w.busy.Store(true)
	w.finish(1, "u1")
	w.write("late", "a build's")
	w.busy.Store(false)
	w.begin(1, "u2")
	w.finish(1, "u2")
	w.write("b", "a person's")
	w.Leave(1)
	w.want("a:1 call +0 ~0 -0 ok", "a:2 background +1 ~0 -0", "a:3 call +0 ~0 -0 ok")
}

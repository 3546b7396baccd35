package trees_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
)

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
	w.want("a:1 call +0 ~0 -0 ok", "a:2 background +1 ~0 -0", "a:3 call +0 ~0 -0 ok", "a:4 background +1 ~0 -0 with outside")
}

// TestWaiting: what changes while a program with hooks waits is its or a person's. An undo of its run leaves that, one of the step does not.
// Where another is at work, it is that one's.
func TestWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.begin(1, "u1")
	w.write("a", "2")
	w.finish(1, "u1")
	w.write("b", "anybody's")
	w.begin(1, "u2")
	w.finish(1, "u2")
	w.want("a:1 call +0 ~1 -0 ok", "a:2 background +1 ~0 -0 with outside", "a:3 call +0 ~0 -0 ok")
	run := &step.Undo{StepUndoInput: &schema.StepUndoInput{Agent: "a", Tree: w.path("")}}
	testkit.Value(w.Undo(t.Context(), &kernel.Job{}, run))(t)
	if got := w.read("a") + w.read("b"); got != "1anybody's" {
		t.Errorf("after the undo of the run: %s", got)
	}
	testkit.Value(w.undo("a", 2))(t)
	if got := w.read("b"); got != "none" {
		t.Errorf("after the undo of the step: %s", got)
	}
	w.enter(2, "b")
	w.begin(2, "v")
	w.write("c", "b's")
	w.finish(2, "v")
	if all := w.all(); !strings.Contains(all, "b:1 call +1 ~0 -0 ok\n") {
		t.Errorf("steps are\n%s", all)
	}
}

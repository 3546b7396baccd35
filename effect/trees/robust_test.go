package trees_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/effect/trees"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
)

// store returns the directory of the store of a tree.
func (w *world) store(root string) string {
	w.Helper()
	for _, path := range testkit.Value(filepath.Glob(filepath.Join(w.state, "steps", "*", "root")))(w.T) {
		if testkit.ReadFile(w.T, path) == root {
			return filepath.Dir(path)
		}
	}
	w.Fatalf("%s has no store", root)
	return ""
}

// stall makes the next reading of a tree, which was open before, wait until the function that it returns is called.
func (w *world) stall(root string) (goOn func()) {
	w.Helper()
	path := filepath.Join(w.store(root), "used")
	testkit.Must(w.T, errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)))
	pipe := testkit.Value(os.OpenFile(path, os.O_RDWR, 0))(w.T)
	goOn = func() {
		_ = os.Remove(path) // before the reading goes on, which replaces it
		_, _ = pipe.WriteString("[]")
		_ = pipe.Close()
	}
	w.Cleanup(goOn)
	return goOn
}

// other makes another directory in the home.
func (w *world) other(name string) string {
	w.Helper()
	path := filepath.Join(w.home, name)
	testkit.Must(w.T, os.MkdirAll(path, 0o755))
	return path
}

// TestManyCuts: a step has two numbers of its cuts, however many there are, and what an undo changed between them is not its.
func TestManyCuts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.write(name, "1")
	}
	w.enter(1, "a")
	w.write("d", "1")
	w.begin(1, "long")
	w.write("a", "2")
	short := w.begin(1, "short")
	w.write("b", "2")
	w.finish(1, "short")
	testkit.Value(w.undo("a", short))(t)
	testkit.Value(w.undo("a", 1))(t) // what was before is not between
	w.write("c", "2")
	w.begin(1, "more")
	w.finish(1, "more")
	w.finish(1, "long")
	for _, r := range w.steps.View().Of("a") {
		if r.Step == 2 && (len(r.Cuts) != 2 || r.Files.Changed != 3) {
			t.Errorf("it has the cuts %v and the files %+v", r.Cuts, r.Files)
		}
	}
	testkit.Value(w.undo("a", 2))(t)
	if got := w.read("a") + w.read("b") + w.read("c") + w.read("d"); got != "111none" {
		t.Errorf("after the undo: %s", got)
	}
	testkit.Value(w.undo("a", short+1))(t) // the first undo
	if got := w.read("b"); got != "2" {
		t.Errorf("after the undo of the undo: %s", got)
	}
}

// TestPeriodBesideCall: a call that stays open does not keep the period of another program from its end.
func TestPeriodBesideCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.begin(1, "u")
	w.enter(2, "b")
	w.write("b", "1")
	testkit.Eventually(t, "the step of the other", func() bool { return len(w.steps.View().Of("b")) == 1 })
	w.write("c", "1")
	w.want("b:1 activity +1 ~0 -0 with a:1", "b:2 activity +1 ~0 -0 with a:1") // a question about the steps ends the period too
	w.finish(1, "u")
	w.want("b:1 activity +1 ~0 -0 with a:1", "b:2 activity +1 ~0 -0 with a:1", "a:1 call +2 ~0 -0 ok with b")
}

// TestDiscard: a store is not removed, however long nobody worked in it, while its tree is open.
func TestDiscard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.Leave(1)
	store, soon := w.store(w.path("")), time.Now().Add(time.Hour)
	testkit.Must(t, w.DiscardStores(soon))
	if _, err := os.Stat(filepath.Join(store, "current")); err != nil {
		t.Errorf("an open store is removed: %v", err)
	}
	w.Close()
	w.open()
	testkit.Must(t, w.DiscardStores(soon.Add(-2*time.Hour)))
	if _, err := os.Stat(store); err != nil {
		t.Errorf("a young store is removed: %v", err)
	}
	testkit.Must(t, w.DiscardStores(soon))
	if entries := testkit.Value(os.ReadDir(filepath.Join(w.state, "steps")))(t); len(entries) != 1 { // the key
		t.Errorf("there are still %v", entries)
	}
	w.enter(2, "a")
}

// TestEnterIdle: a tree that nobody works in is not closed while a program waits for another tree to enter both.
func TestEnterIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	slow := w.other("slow")
	both := trees.Newcomer{PID: 1, Agent: "a", Dirs: []string{slow, w.path("")}, Home: w.home}
	w.Enter(both)
	w.Leave(1)
	w.Close()
	goOn := w.stall(slow)
	w.open()
	w.enter(2, "b")
	w.Leave(2)
	entered := make(chan []string, 1)
	both.PID = 3
	go func() { entered <- w.Enter(both) }()
	testkit.Eventually(t, "the program waits", func() bool { return len(w.Trees.Trees()) == 2 })
	w.Look(time.Now().Add(time.Hour))
	goOn()
	for _, why := range testkit.Receive(t, entered, "the program's start") {
		if strings.HasPrefix(why, w.path("")) {
			t.Errorf("not covered: %s", why)
		}
	}
	w.write("a", "2")
	w.begin(3, "u")
	if all := w.all(); !strings.Contains(all, " activity +0 ~1") {
		t.Errorf("steps are\n%s", all)
	}
	w.Leave(3)
	w.Look(time.Now().Add(time.Hour))
	if list := w.Trees.Trees(); len(list) != 0 {
		t.Errorf("trees that nobody works in are still open: %+v", list)
	}
}

// TestLeftWaiting: a caller that waits for a tree which is still being read can leave, and a program that ends meanwhile delays nobody.
func TestLeftWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.write("a", "2")
	w.Leave(1)
	w.Close()
	w.stall(w.path(""))
	w.open()
	records := w.steps.View().Of("a")
	for what, ask := range map[string]func(ctx context.Context) error{
		"an undo": func(ctx context.Context) error {
			_, err := w.Undo(ctx, &kernel.Job{}, &step.Undo{StepUndoInput: &schema.StepUndoInput{Agent: "a", Tree: w.path("")}})
			return err
		},
		"a diff": func(ctx context.Context) error {
			_, _, err := w.Diff(ctx, &step.Diff{Records: records})
			return err
		},
		"a step": func(ctx context.Context) error { return w.Whole(ctx, []schema.StepState{records[0].StepState}) },
	} {
		ctx, leave := context.WithCancel(t.Context())
		stays, gone := make(chan error, 1), make(chan error, 1)
		go func() { stays <- ask(t.Context()) }() // and keeps no other from going
		go func() { gone <- ask(ctx) }()
		leave()
		if err := testkit.Receive(t, gone, "the end of "+what); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
		w.Cleanup(func() { testkit.Receive(t, stays, "the end of "+what) })
	}
	entered := make(chan []string, 1)
	go func() {
		entered <- w.Enter(trees.Newcomer{PID: 2, Agent: "b", Dirs: []string{w.path("")}, Home: w.home})
	}()
	if why := testkit.Receive(t, entered, "the program's start"); len(why) != 1 || !strings.Contains(why[0], "still being read") {
		t.Errorf("not covered: %v", why)
	}
	left := make(chan error, 1)
	go func() {
		w.Leave(2)
		left <- w.Settle(t.Context(), true)
	}()
	testkit.Must(t, testkit.Receive(t, left, "the program's end"))
}

// TestKey: an incomplete key is made again. If something is sealed with the one that it was, that is said, and all but secrets is kept.
func TestKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Close()
	key := filepath.Join(w.state, "steps", "key")
	testkit.Must(t, os.WriteFile(key, nil, 0o600)) // by a power cut
	w.open()
	if n := len(testkit.ReadFile(t, key)); n != 32 {
		t.Fatalf("the key has %d bytes", n)
	}
	w.write("a", "1")
	w.write(".env", "TOKEN=1")
	w.enter(1, "a")
	w.Leave(1)
	w.Close()
	testkit.Must(t, os.WriteFile(key, []byte("short"), 0o600))
	w.open()
	w.enter(2, "b")
	if list := w.Trees.Trees(); len(list) != 1 || list[0].Why == nil || !strings.Contains(*list[0].Why, "put it back from a copy, or remove it") {
		t.Errorf("trees: %+v", list)
	}
	w.write("a", "2")
	w.write(".env", "TOKEN=2")
	w.all()
	if r := w.steps.View().Of("b")[0]; r.Files.Changed != 2 || r.Files.Missed != 1 {
		t.Errorf("the step has %+v", r.Files)
	}
	if text := testkit.ReadFile(t, key); text != "short" {
		t.Errorf("the key is %q", text)
	}
}

// TestUndoInside: what an undo writes in a tree inside its tree, or around it, is not what the programs there did.
func TestUndoInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	testkit.Must(t, errors.Join(os.MkdirAll(w.path("sub/.git"), 0o755), os.MkdirAll(w.path(".git"), 0o755)))
	w.write("sub/f", "1")
	w.enter(1, "a")
	w.begin(1, "u")
	w.write("sub/f", "2")
	w.finish(1, "u")
	w.Enter(trees.Newcomer{PID: 2, Agent: "b", Dirs: []string{w.path("sub")}, Home: w.home})
	testkit.Value(w.undo("a", 1))(t)
	w.want("a:1 call +0 ~1 -0 ok", "a:2 undo +0 ~1 -0")
	w.write("sub/f", "3")
	w.all()
	inside, one := &schema.StepUndoInput{Agent: "b", Tree: w.path("sub")}, int64(1)
	inside.Step = &one
	before := len(w.steps.View().Of("a"))
	testkit.Value(w.Undo(t.Context(), &kernel.Job{}, &step.Undo{StepUndoInput: inside}))(t)
	if got := w.read("sub/f"); got != "1" {
		t.Errorf("after the undo: %s", got)
	}
	if all := w.all(); len(w.steps.View().Of("a")) != before {
		t.Errorf("steps are\n%s", all)
	}
}

// TestOneEntry: a call is recorded once for each of its trees that it changed; if there is none, once.
func TestOneEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings.MaxFiles = 3
	w.Close()
	w.open()
	large, small := w.other("large"), w.other("small")
	for _, name := range []string{"1", "2", "3", "4"} {
		testkit.Must(t, os.WriteFile(filepath.Join(large, name), nil, 0o600))
	}
	w.write("a", "1")
	w.Enter(trees.Newcomer{PID: 1, Agent: "a", Dirs: []string{large, w.path(""), small}, Home: w.home})
	w.begin(1, "nothing")
	w.finish(1, "nothing")
	w.begin(1, "small")
	testkit.Must(t, os.WriteFile(filepath.Join(small, "b"), nil, 0o600))
	w.finish(1, "small")
	w.begin(1, "both")
	testkit.Must(t, os.Remove(filepath.Join(small, "b")))
	w.write("a", "2")
	w.finish(1, "both")
	var got []string
	for _, r := range w.steps.View().Of("a") {
		got = append(got, filepath.Base(r.Tree))
	}
	if want := "work small work small"; strings.Join(got, " ") != want {
		t.Errorf("records are of %v, want %s", got, want)
	}
}

// TestBeginLeaving: a call that begins while its program ends does not stay open.
func TestBeginLeaving(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	for pid := range int64(40) {
		w.enter(pid, "a")
		begun := make(chan error, 1)
		go func() {
			_, err := w.Begin(t.Context(), &kernel.Job{PID: pid}, &schema.StepBeginInput{Host: "h", Session: "s", Tool: "Bash"})
			begun <- err
		}()
		w.Leave(pid)
		testkit.Must(t, testkit.Receive(t, begun, "the call's begin"))
	}
	w.enter(100, "b")
	w.write("a", "2")
	w.Leave(100)
	for _, r := range w.steps.View().Of("b") {
		if r.Shared {
			t.Errorf("calls of programs that have ended are still open: %v", r.With)
		}
	}
}

// TestEndBeforeBegin: a call that ends before it has begun in all trees is over in all of them.
func TestEndBeforeBegin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	slow := w.other("slow")
	both := trees.Newcomer{PID: 1, Agent: "a", Dirs: []string{w.path(""), slow}, Home: w.home}
	w.Enter(both)
	w.Leave(1)
	w.Close()
	goOn := w.stall(slow)
	w.open()
	w.Enter(both)
	w.begin(1, "u1") // from now on only calls are cut
	w.finish(1, "u1")
	w.write("a", "2")
	begun := make(chan error, 1)
	go func() {
		use := "u2"
		_, err := w.Begin(t.Context(), &kernel.Job{PID: 1}, &schema.StepBeginInput{Host: "h", Session: "s", Tool: "Bash", Use: &use})
		begun <- err
	}()
	testkit.Eventually(t, "the call's cut in the first tree", func() bool { return len(w.steps.View().Of("a")) == 2 })
	testkit.Must(t, w.Settle(t.Context(), true)) // it has begun there
	w.finish(1, "u2")
	goOn()
	testkit.Must(t, testkit.Receive(t, begun, "the call's begin"))
	w.Enter(trees.Newcomer{PID: 2, Agent: "b", Dirs: []string{slow}, Home: w.home})
	testkit.Must(t, os.WriteFile(filepath.Join(slow, "b"), nil, 0o600))
	w.Leave(2)
	if list := w.steps.View().Of("b"); len(list) != 1 || list[0].Shared {
		t.Errorf("steps are\n%s", w.all())
	}
}

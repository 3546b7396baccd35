package trees_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/trees"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
)

// TestRootReplaced: a tree whose directory became a link to another is not read through the link.
func TestRootReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	private := filepath.Join(w.home, "private")
	testkit.Must(t, os.Mkdir(private, 0o700))
	testkit.Must(t, os.WriteFile(filepath.Join(private, "key"), []byte("SECRETKEY\n"), 0o600))
	w.begin(1, "u1")
	testkit.Must(t, os.Rename(filepath.Join(w.home, "work"), filepath.Join(w.home, "aside")))
	testkit.Must(t, os.Symlink(private, filepath.Join(w.home, "work")))
	testkit.Must(t, os.WriteFile(filepath.Join(w.home, "aside", "x"), nil, 0o600)) // an event of the directory that is watched
	w.finish(1, "u1")
	text, _, err := w.Diff(t.Context(), &step.Diff{Records: w.steps.View().Of("a")})
	if strings.Contains(string(text), "SECRETKEY") {
		t.Errorf("the agent reads what it may not: %s %v", text, err)
	}
}

// TestRootReplacedUndo: an undo does not write through it either.
func TestRootReplacedUndo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("keys", "the agent's\n")
	w.enter(1, "a")
	private := filepath.Join(w.home, "private")
	testkit.Must(t, os.Mkdir(private, 0o700))
	w.begin(1, "u1")
	testkit.Must(t, os.Remove(w.path("keys")))
	w.finish(1, "u1")
	w.begin(1, "u2")
	testkit.Must(t, os.Rename(filepath.Join(w.home, "work"), filepath.Join(w.home, "aside")))
	testkit.Must(t, os.Symlink(private, filepath.Join(w.home, "work")))
	w.finish(1, "u2")
	_, err := w.undo("a", 1)
	if _, statErr := os.Stat(filepath.Join(private, "keys")); statErr == nil {
		t.Errorf("the undo wrote through the link: %v", err)
	}
}

// TestDirReplaced: another directory at a path is read, although the path was a directory before.
func TestDirReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("sub/f", "1")
	w.write("empty/f", "1")
	testkit.Must(t, os.Remove(w.path("empty/f")))
	w.enter(1, "a")
	w.begin(1, "u1")
	testkit.Must(t, os.Rename(w.path("sub"), w.path("old")))
	w.write("sub/f", "2")
	if n := w.finish(1, "u1"); n != 3 { // old, old/f, sub/f
		t.Errorf("moved: %d files", n)
	}
	w.begin(1, "u2")
	w.write("sub/g", "2")
	if n := w.finish(1, "u2"); n != 1 {
		t.Errorf("after move: %d files", n)
	}
	w.begin(1, "u3")
	testkit.Must(t, os.Remove(w.path("empty")))
	w.write("empty/g", "2")
	if n := w.finish(1, "u3"); n != 1 {
		t.Errorf("removed and made: %d files", n)
	}
}

// TestLongTool: a tool of the longest name does not keep steps from being recorded.
func TestLongTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	in := &schema.StepBeginInput{Host: "claude", Session: "s", Tool: strings.Repeat("t", 256)}
	testkit.Value(w.Begin(t.Context(), &kernel.Job{PID: 1}, in))(t)
	w.write("a", "2")
	if _, err := w.End(t.Context(), &kernel.Job{PID: 1}, &schema.StepEndInput{Host: "claude", Session: "s", Tool: in.Tool}); err != nil {
		t.Errorf("end: %v", err)
	}
	if err := w.Settle(t.Context(), false); err != nil {
		t.Errorf("all is stuck: %v", err)
	}
}

// TestLongPath: so does a path that is no text.
func TestLongPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	long := w.path("")
	for range 5 {
		long = filepath.Join(long, strings.Repeat("\xff", 250))
	}
	testkit.Must(t, os.MkdirAll(long, 0o755))
	w.enter(1, "a")
	w.begin(1, "u")
	testkit.Must(t, os.WriteFile(filepath.Join(long, "f"), nil, 0o600))
	use := "u"
	if _, err := w.End(t.Context(), &kernel.Job{PID: 1}, &schema.StepEndInput{Host: "h", Session: "s", Tool: "Bash", Use: &use}); err != nil {
		t.Errorf("end: %v", err)
	}
	if err := w.Settle(t.Context(), false); err != nil {
		t.Errorf("all is stuck: %v", err)
	}
}

// TestBeforeFirstBegin: what a program did before it first said that a call begins is its.
func TestBeforeFirstBegin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.write("evil", "1")
	w.begin(1, "u")
	w.finish(1, "u")
	w.want("a:1 activity +1 ~0 -0", "a:2 call +0 ~0 -0 ok")
}

// TestNested: what changes in a tree inside a tree is not only that of who works in the outer one.
func TestNested(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	testkit.Must(t, os.MkdirAll(w.path("sub/.git"), 0o755))
	testkit.Must(t, os.MkdirAll(w.path(".git"), 0o755))
	w.write("sub/f", "1")
	w.enter(1, "a")
	w.Enter(trees.Newcomer{PID: 2, Agent: "b", Dirs: []string{w.path("sub")}, Home: w.home})
	w.begin(1, "u")
	w.begin(2, "v")
	w.write("sub/f", "of b")
	w.finish(2, "v")
	w.finish(1, "u")
	out, err := w.undo("a", 1)
	t.Logf("%+v %v", out, err)
	if w.read("sub/f") != "of b" && len(out.Shared) == 0 {
		t.Errorf("the undo of a's step destroyed the work of b without a word: %v %v", out.Shared, err)
	}
}

// TestLostOverlapping: a call that was open when the kernel was killed is recorded although a later one was.
func TestLostOverlapping(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.begin(1, "u1")
	w.write("f", "1")
	w.begin(1, "u2") // the cut is that of a:1
	w.finish(1, "u2")
	before := w.steps.View().Last("a")
	w.mu.Lock()
	w.refuses = true // the kernel is killed
	w.mu.Unlock()
	w.Close()
	w.mu.Lock()
	w.refuses = false
	w.mu.Unlock()
	w.open()
	w.enter(2, "b")
	for _, r := range w.steps.View().Of("a") {
		if r.Step == 1 {
			return
		}
	}
	testkit.Must(t, w.Settle(t.Context(), true))
	if all := w.all(); !strings.Contains(all, "a:1 ") {
		t.Errorf("a:1 is lost (last was %d):\n%s", before, all)
	}
}

// TestTwoTrees: calls of a program with two trees begin and end at once.
func TestTwoTrees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := filepath.Join(w.home, "other")
	testkit.Must(t, os.MkdirAll(other, 0o755))
	w.write("a", "1")
	w.Enter(trees.Newcomer{PID: 1, Agent: "a", Dirs: []string{w.path(""), other}, Home: w.home})
	w.begin(1, "long")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			use := string(rune('a' + i))
			for range 15 {
				testkit.Must(t, os.WriteFile(filepath.Join(other, use), []byte(time.Now().String()), 0o644))
				testkit.Must(t, os.WriteFile(w.path(use), []byte(time.Now().String()), 0o644))
				w.begin(1, use)
				w.finish(1, use)
			}
		})
	}
	wg.Wait()
	w.finish(1, "long")
}

// TestCloseDuringUndo: the kernel may end while what a program that has left did is undone.
func TestCloseDuringUndo(t *testing.T) {
	t.Parallel()
	for range 6 {
		w := newWorld(t)
		w.write("f0", "0")
		w.enter(1, "a")
		for i := range 300 {
			w.write(fmt.Sprint("f", i), "1")
		}
		w.Leave(1)
		ended := make(chan error, 2)
		go func() { _, err := w.undo("a", 1); ended <- err }()
		go func() { w.Close(); ended <- nil }()
		testkit.Receive(t, ended, "the end of undo or kernel")
		testkit.Receive(t, ended, "the end of both")
	}
}

// TestAfterKill: what a person changed while no kernel ran is not told as an agent's alone.
func TestAfterKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	used := testkit.Value(filepath.Glob(filepath.Join(w.state, "steps", "*", "used")))(t)
	text := testkit.Value(os.ReadFile(used[0]))(t)
	w.Close()
	testkit.Must(t, os.WriteFile(used[0], text, 0o600)) // killed
	w.write("a", "a person's, days later")
	w.open()
	w.enter(2, "b")
	for _, r := range w.steps.View().Of("a") {
		if !r.Shared {
			t.Errorf("it is said to be the agent's alone: %+v", r.StepState)
		}
	}
}

// TestRootFile: a file that a power cut left empty does not keep a tree from being kept.
func TestRootFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	root := testkit.Value(filepath.Glob(filepath.Join(w.state, "steps", "*", "root")))(t)
	w.Close()
	testkit.Must(t, os.WriteFile(root[0], nil, 0o600))
	w.open()
	w.enter(2, "b")
}

// TestProgramsOfSecondAuthor: what a program has started is recorded when it leaves, although nothing changed, and a call that was open
// beside it was cut.
func TestProgramsOfSecondAuthor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.enter(2, "b")
	w.begin(1, "u")
	w.mu.Lock()
	w.started = schema.StepItems{Count: 1, Items: []string{"rm -rf /"}}
	w.mu.Unlock()
	// the cut of another call takes what b started, and changes nothing
	w.begin(1, "v")
	w.finish(1, "v")
	w.finish(1, "u")
	w.Leave(2)
	n := int64(0)
	for _, r := range w.steps.View().Of("") {
		n += r.Programs.Count
	}
	if n != 1 {
		t.Errorf("%d programs are recorded", n)
	}
}

// TestFull: a store that is full does not end the recording for good.
func TestFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Close()
	w.settings.MaxBytes, w.settings.KeepBytes = 1<<20, 1<<18
	w.open()
	w.write("a", "1")
	w.enter(1, "a")
	w.begin(1, "u")
	noise := make([]byte, 2<<20)
	_, _ = rand.Read(noise)
	w.write("big", string(noise))
	w.finish(1, "u")
	testkit.Must(t, os.Remove(w.path("big")))
	w.begin(1, "v")
	w.write("a", "evil")
	if n := w.finish(1, "v"); n == 0 {
		t.Errorf("nothing is recorded any more")
	}
}

package crash_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestKilledSteps kills the daemon while steps are recorded and undone: every step that was answered is there afterwards with what it
// needs to be undone, and an undo that was cut off has left no file that is neither as before nor as after it. PWOS_LONG=1 does it
// 1,000 times.
func TestKilledSteps(t *testing.T) {
	t.Parallel()
	for i := range testkit.Rounds(2, 1, 50) {
		t.Run(fmt.Sprint("tree", i), func(t *testing.T) { (&worksite{T: t, chance: rand.New(rand.NewPCG(uint64(i), 11))}).run() })
	}
}

// worksite is a directory in which an agent works, under a daemon that is killed.
type worksite struct {
	*testing.T
	chance *rand.Rand
	place  *testkit.Place
	dir    string
	pid    int64
	done   []deed // the steps that were answered
	serial int
	undone int
	cut    int // undos without an answer
}

// tree is the content of a directory by name.
type tree map[string]string

// deed is a step with the directory before and after it.
type deed struct {
	number        int64
	before, after tree
}

func (w *worksite) run() {
	w.place = testkit.NewPlace(w, settings)
	w.dir = w.place.Path("tree")
	testkit.Must(w, os.MkdirAll(filepath.Join(w.dir, "d"), 0o700))
	testkit.WriteFile(w, filepath.Join(w.dir, "d/stays"), "x")
	for range 6 {
		w.act()
	}
	for range testkit.Rounds(3, 5, 20) {
		w.round()
	}
	w.Logf("%d steps, %d undos, %d cut off", len(w.done), w.undone, w.cut)
	if len(w.done) == 0 || w.undone == 0 {
		w.Error("too few for the kills to show anything")
	}
}

// round is the life of one daemon.
func (w *worksite) round() {
	d := daemonAt(w.T, w.place).Start(w)
	defer d.Kill(w)
	c, err := dial(w.place)
	testkit.Must(w, err)
	defer func() { _ = c.Close() }()
	var out struct {
		ChildPID int64 `json:"child_pid"`
	}
	data, err := json.Marshal(map[string]any{"child_agent_id": "a", "command": []string{"sleep", "1000"}, "cwd": w.dir, "channel": "fd3", "capabilities": map[string]any{"allowed_syscalls": []string{"Step.*"}}})
	testkit.Must(w, err)
	testkit.Eventually(w, "the end of the agent of before", func() bool {
		err := c.call("command", "Syscall.Spawn", string(data), &out)
		if err != nil && !errors.Is(err, errRefused) {
			w.Fatal(err)
		}
		return err == nil
	})
	w.pid = out.ChildPID
	w.whole(c)
	if len(w.done) > 0 {
		w.undoes(c)
	}
	if w.chance.IntN(3) == 0 && len(w.done) > 0 {
		w.cutOff(c, d)
		return
	}
	if w.chance.IntN(4) > 0 { // else it may be killed in the first one, and on a busy machine usually is
		testkit.Must(w, w.step(c))
	}
	killed := w.killSoon(d, 120*time.Millisecond)
	for err := error(nil); err == nil; {
		if err = w.step(c); errors.Is(err, errRefused) {
			w.Error(err)
		}
	}
	<-killed
}

// killSoon kills the daemon within a time, and closes the channel then.
func (w *worksite) killSoon(d *testkit.Process, within time.Duration) <-chan struct{} {
	killed := make(chan struct{})
	after := time.Duration(w.chance.Int64N(int64(within)))
	go func() {
		defer close(killed)
		wait(after)
		d.Kill(w)
	}()
	return killed
}

// step makes a step. It returns an error if that was not answered.
func (w *worksite) step(c *client) error {
	before := w.now()
	var begun, ended struct {
		Step      int64   `json:"step"`
		Uncovered *string `json:"uncovered"`
	}
	ask := fmt.Sprintf(`{"pid":%d,"host":"h","session":"s","tool":"t"}`, w.pid)
	if err := c.call("command", "Step.Begin", ask, &begun); err != nil {
		return err
	}
	for range 1 + w.chance.IntN(3) {
		w.act()
	}
	after := w.now()
	if err := c.call("command", "Step.End", ask, &ended); err != nil {
		return err
	}
	if begun.Step == 0 || begun.Step != ended.Step {
		w.Fatalf("step %d begun, %d ended", begun.Step, ended.Step)
	}
	if begun.Uncovered == nil && !maps.Equal(before, after) {
		w.done = append(w.done, deed{begun.Step, before, after})
	}
	return nil
}

// act changes a file. No content is text, which would be merged.
func (w *worksite) act() {
	path := filepath.Join(w.dir, []string{"a", "b", "c", "d/a", "d/b"}[w.chance.IntN(5)])
	if w.chance.IntN(4) == 0 {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			testkit.Must(w, err)
		}
		return
	}
	w.serial++
	text := fmt.Sprintf("%d\x00", w.serial)
	for range w.chance.IntN(2000) {
		text += "\x00more of it"
	}
	testkit.WriteFile(w, path, text)
}

func (w *worksite) now() tree {
	w.Helper()
	all := tree{}
	testkit.EachFile(w, func(path string, content []byte) {
		if !strings.Contains(path, "/.pwos-undo-") {
			all[path] = string(content)
		}
	}, w.dir)
	return all
}

// whole checks that all steps that were answered are recorded.
func (w *worksite) whole(c *client) {
	for _, one := range w.done {
		var out struct {
			Records []json.RawMessage `json:"records"`
		}
		if err := c.call("query", "Step.Get", fmt.Sprintf(`{"agent":"a","step":%d}`, one.number), &out); err != nil || len(out.Records) != 1 {
			w.Fatalf("step %d: %d records, %v", one.number, len(out.Records), err)
		}
	}
}

// expected returns a directory after the undo of a step, and whether that has no conflict.
func (d *deed) expected(now tree) (tree, bool) {
	want := maps.Clone(now)
	for _, path := range slices.Concat(slices.Collect(maps.Keys(d.before)), slices.Collect(maps.Keys(d.after))) {
		before, was := d.before[path]
		after, is := d.after[path]
		here, there := now[path]
		switch {
		case was == is && before == after, there == was && here == before:
		case there != is || here != after:
			return now, false
		case was:
			want[path] = before
		default:
			delete(want, path)
		}
	}
	return want, true
}

// undo asks for the undo of a random step.
func (w *worksite) undo(c *client, one *deed) (conflicts int, err error) {
	var out struct {
		Conflicts []json.RawMessage `json:"conflicts"`
	}
	data, err := json.Marshal(map[string]any{"agent": "a", "tree": w.dir, "step": one.number})
	testkit.Must(w, err)
	err = c.call("command", "Step.Undo", string(data), &out)
	return len(out.Conflicts), err
}

// undoes takes back a random step.
func (w *worksite) undoes(c *client) {
	one := &w.done[w.chance.IntN(len(w.done))]
	now := w.now()
	want, free := one.expected(now)
	conflicts, err := w.undo(c, one)
	if free != (err == nil && conflicts == 0) {
		w.Fatalf("undo of step %d: %v, %d conflicts, want none: %v", one.number, err, conflicts, free)
	}
	if got := w.now(); !maps.Equal(got, want) {
		w.Fatalf("the undo of step %d has left another directory", one.number)
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, "*", ".pwos-undo-*")); err != nil || left != nil {
		w.Fatalf("an undo that was cut off has left %q, %v", left, err)
	}
	if left, err := filepath.Glob(filepath.Join(w.dir, ".pwos-undo-*")); err != nil || left != nil {
		w.Fatalf("an undo that was cut off has left %q, %v", left, err)
	}
	w.undone++
}

// cutOff kills the daemon during an undo.
func (w *worksite) cutOff(c *client, d *testkit.Process) {
	one := &w.done[w.chance.IntN(len(w.done))]
	now := w.now()
	want, _ := one.expected(now)
	killed := w.killSoon(d, 12*time.Millisecond)
	if _, err := w.undo(c, one); err != nil && !errors.Is(err, errRefused) {
		w.cut++
	}
	<-killed
	for path, text := range w.now() {
		if before, was := now[path]; was && text == before {
			continue
		}
		if after, is := want[path]; !is || text != after {
			w.Fatalf("%s is neither as before the undo of step %d nor as after it", path, one.number)
		}
	}
	for path := range now {
		if _, is := want[path]; !is {
			continue
		}
		if _, err := os.Lstat(path); err != nil {
			w.Fatalf("%s is gone", path)
		}
	}
}

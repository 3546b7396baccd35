package trees_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/trees"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// world is a kernel with steps only, and the trees that it keeps.
type world struct {
	*testing.T
	*trees.Trees
	home, state string
	settings    trees.Settings

	mu      sync.Mutex
	steps   *step.Domain
	journal domaintest.Journal
	refuses bool // steps cannot be journaled, as on a full disk
	ended   map[int64]bool
	busy    atomic.Bool
	frozen  atomic.Int64

	started schema.StepItems
	asked   []trees.Question
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, home: t.TempDir(), state: t.TempDir(), steps: step.New(nil), ended: make(map[int64]bool), settings: trees.Settings{Keep: time.Hour}}
	w.open()
	t.Cleanup(func() { w.Close() })
	return w
}

func (w *world) open() {
	w.Helper()
	w.Trees = testkit.Value(trees.New(trees.Config{
		Settings: w.settings, Dir: filepath.Join(w.state, "steps"), Copies: filepath.Join(w.state, "copies"), Kernel: w, Agents: w, Processes: w, View: w.steps.View, Ask: w.ask,
		Log: slog.New(slog.DiscardHandler), Prompts: noPrompts{},
	}))(w.T)
}

// Do implements trees.Kernel.
func (w *world) Do(_ context.Context, own kernel.Own) (kernel.Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuses {
		return kernel.Answer{}, fault.JournalUnavailable.New("the disk is full")
	}
	data, err := schema.Marshal(own.Request.Input)
	if err != nil {
		return kernel.Answer{}, err
	}
	call := domaintest.Request(w, own.Request.Row.Type, string(data))
	result, err := w.steps.Decide(call)
	if err == nil {
		w.journal.Apply(w.steps, call, result.Data)
		w.steps.Publish()
	}
	return kernel.Answer{Data: result.Data}, err
}

// Process implements kernel.Processes.
func (w *world) Process(pid int64) *schema.Descriptor {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &schema.Descriptor{PID: pid, AgentID: fmt.Sprintf("agent-%d", pid)}
	if w.ended[pid] {
		p.ExitTick = new(int64)
	}
	return p
}

func (w *world) Busy(int64, time.Time) bool { return w.busy.Load() }

func (w *world) Freeze(int64) func() {
	w.frozen.Add(1)
	return func() { w.frozen.Add(-1) }
}

func (w *world) Started(int64) schema.StepItems {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.started = schema.StepItems{} }()
	return w.started
}

func (w *world) path(name string) string { return filepath.Join(w.home, "work", name) }

func (w *world) write(name, text string) {
	w.Helper()
	testkit.Must(w.T, errors.Join(os.MkdirAll(filepath.Dir(w.path(name)), 0o755), os.WriteFile(w.path(name), []byte(text), 0o644)))
}

func (w *world) read(name string) string {
	text, err := os.ReadFile(w.path(name))
	if err != nil {
		return "none"
	}
	return string(text)
}

// enter starts a program of the directory work.
func (w *world) enter(pid int64, agent string) {
	w.Helper()
	if why := w.Enter(trees.Newcomer{PID: pid, Agent: agent, Dirs: []string{w.path("")}, Copies: []string{w.path("copied")}, Home: w.home}); why != nil {
		w.Fatalf("not covered: %v", why)
	}
}

func (w *world) begin(pid int64, use string) int64 {
	w.Helper()
	out, err := w.Begin(w.Context(), &kernel.Job{PID: pid, Seq: 7}, &schema.StepBeginInput{Host: "h", Session: "s", Tool: "Bash", Use: &use})
	testkit.Must(w.T, err)
	return out.Step
}

func (w *world) finish(pid int64, use string) int64 {
	w.Helper()
	out, err := w.End(w.Context(), &kernel.Job{PID: pid}, &schema.StepEndInput{Host: "h", Session: "s", Tool: "Bash", Use: &use})
	testkit.Must(w.T, err)
	return out.Files
}

// all returns a line for each step that is recorded.
func (w *world) all() string {
	w.Helper()
	testkit.Must(w.T, w.Settle(w.Context(), true))
	var b strings.Builder
	for _, r := range w.steps.View().Of("") {
		fmt.Fprintf(&b, "%s:%d %s +%d ~%d -%d", r.Agent, r.Step, r.Kind, r.Files.Made, r.Files.Changed, r.Files.Removed)
		if r.Result != nil {
			b.WriteString(" " + *r.Result)
		}
		if r.Shared {
			b.WriteString(" with " + strings.Join(r.With, ","))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (w *world) want(lines ...string) {
	w.Helper()
	if got, want := w.all(), strings.Join(lines, "\n")+"\n"; got != want {
		w.Errorf("steps are\n%swant\n%s", got, want)
	}
}

func (w *world) undo(agent string, number int64) (schema.StepUndoOutput, error) {
	w.Helper()
	return w.Undo(w.Context(), &kernel.Job{}, &step.Undo{StepUndoInput: &schema.StepUndoInput{Agent: agent, Tree: w.path(""), Step: &number}})
}

// TestCalls: what changes while a tool call is open is its, what changes before is the agent's background, or, if it has no processes but
// its program, perhaps a person's.
func TestCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.write("copied/b", "")
	w.enter(1, "a")
	if n := w.begin(1, "u1"); n != 1 {
		t.Errorf("the first step is %d", n)
	}
	w.write("a", "2")
	w.write("b", "1")
	w.write("copied/a", "what the kernel does there is no step")
	if n := w.finish(1, "u1"); n != 2 {
		t.Errorf("%d files", n)
	}
	w.write("c", "a person's")
	w.begin(1, "u2")
	w.finish(1, "u2")
	w.busy.Store(true)
	w.write("d", "a server's")
	if n := w.begin(1, "u3"); n != 5 { // after what was before it
		t.Errorf("the step is %d", n)
	}
	testkit.Must(t, os.Remove(w.path("a")))
	w.finish(1, "u3")
	w.want("a:1 call +1 ~1 -0 ok", "a:2 background +1 ~0 -0 with outside", "a:3 call +0 ~0 -0 ok", "a:4 background +1 ~0 -0",
		"a:5 call +0 ~0 -1 ok")

	if _, err := w.undo("a", 1); !errors.Is(err, fault.StepsConflict) {
		t.Errorf("undo of what was removed since: %v", err)
	}
	testkit.Value(w.undo("a", 5))(t)
	testkit.Value(w.undo("a", 1))(t)
	if got := w.read("a") + w.read("b") + w.read("c") + w.read("d"); got != "1nonea person'sa server's" {
		t.Errorf("after the undo: %s", got)
	}
	if w.frozen.Load() != 0 {
		t.Error("an agent is still frozen")
	}
}

// TestOverlap: calls that are open at once share what changes meanwhile; what was there before the second is the first's alone.
func TestOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.begin(1, "u1")
	w.write("a", "2")
	w.begin(1, "u2")
	w.write("b", "both")
	w.finish(1, "u1")
	w.write("c", "second")
	w.finish(1, "u2")
	w.want("a:1 call +1 ~1 -0 ok with a:2", "a:2 call +2 ~0 -0 ok with a:1")
	out, err := w.undo("a", 2)
	testkit.Must(t, err)
	if got := w.read("a") + w.read("b") + w.read("c"); got != "2nonenone" || len(out.Shared) != 1 || out.Shared[0] != "a:1" {
		t.Errorf("after the undo: %s, shared with %v", got, out.Shared)
	}
}

// TestTwoAgents: programs without hooks that work in one tree share all; one that enters has nothing of what was before.
func TestTwoAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.write("a", "2")
	w.enter(2, "b")
	w.write("b", "1")
	w.want("a:1 activity +0 ~1 -0", "a:2 activity +1 ~0 -0 with b", "b:1 activity +1 ~0 -0 with a")
	w.mu.Lock()
	w.ended[1] = true
	w.mu.Unlock()
	w.write("c", "1") // the end of a is not told yet
	w.want("a:1 activity +0 ~1 -0", "a:2 activity +1 ~0 -0 with b", "b:1 activity +1 ~0 -0 with a",
		"a:3 activity +1 ~0 -0 with b", "b:2 activity +1 ~0 -0 with a")
	w.write("d", "1")
	w.Leave(2)
	w.Leave(2)
	w.write("e", "nobody's")
	w.want("a:1 activity +0 ~1 -0", "a:2 activity +1 ~0 -0 with b", "b:1 activity +1 ~0 -0 with a",
		"a:3 activity +1 ~0 -0 with b", "b:2 activity +1 ~0 -0 with a", "b:3 activity +1 ~0 -0")
}

// TestLostEnds: a call whose end is never told ends with the program, with the next of that name, or with all of its session.
func TestLostEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.begin(1, "u")
	w.begin(1, "u")
	w.begin(1, "v")
	if _, err := w.End(t.Context(), &kernel.Job{PID: 1}, &schema.StepEndInput{Host: "h", Session: "s", Tool: step.Every}); err != nil {
		t.Error(err)
	}
	w.begin(1, "w")
	w.write("a", "2")
	w.Leave(1)
	w.want("a:1 call +0 ~0 -0 unknown", "a:2 call +0 ~0 -0 unknown", "a:3 call +0 ~0 -0 unknown", "a:4 call +0 ~1 -0 unknown")
	if n := w.finish(1, "w"); n != 0 {
		t.Errorf("the end of nothing changed %d files", n)
	}
}

// TestManyOpen: a program that opens too many calls is told that the next one is not kept.
func TestManyOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	for i := range 64 {
		w.begin(1, fmt.Sprint(i))
	}
	use := "more"
	out, err := w.Begin(t.Context(), &kernel.Job{PID: 1}, &schema.StepBeginInput{Host: "h", Session: "s", Tool: "Bash", Use: &use})
	if err != nil || out.Step != 0 || out.Uncovered == nil {
		t.Errorf("one more: %+v, %v", out, err)
	}
}

// TestPrograms: the programs and connections of a call are recorded with it, also if it changed no file.
func TestPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.begin(1, "u")
	w.mu.Lock()
	w.started = schema.StepItems{Count: 2, Refused: 1, Items: []string{"/bin/ls -l", "/usr/bin/git push"}}
	w.mu.Unlock()
	for range 3 {
		w.Connected(1, trees.Connection{Where: "example.com:443", Known: true, Step: "a:1"})
	}
	w.Connected(1, trees.Connection{Where: "other.example:443", Refused: true})
	w.Connected(1, trees.Connection{Where: "of.itself:443", Known: true})
	w.Connected(1, trees.Connection{Where: "of.an.earlier.step:443", Known: true, Step: "a:0"})
	w.Connected(2, trees.Connection{Where: "of.nobody:443"})
	w.finish(1, "u")
	records := []schema.StepState{w.steps.View().Of("a")[0].StepState}
	if records[0].Programs.Items != nil {
		t.Error("the state has the items of a list")
	}
	testkit.Must(t, w.Whole(t.Context(), records))
	if p := records[0].Programs; p.Count != 2 || p.Refused != 1 || len(p.Items) != 2 {
		t.Errorf("programs: %+v", p)
	}
	if c := records[0].Connections; c.Count != 4 || c.Refused != 1 || len(c.Items) != 2 || c.Items[0] != "example.com:443" || c.Items[1] != "other.example:443 (by time) (refused)" {
		t.Errorf("connections: %+v", c)
	}
}

// TestRecorded: a step that cannot be journaled is not lost: it is with the next one, and also if the kernel ends before.
func TestRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.mu.Lock()
	w.refuses = true
	w.mu.Unlock()
	w.begin(1, "u")
	w.write("a", "2")
	use := "u"
	if _, err := w.End(t.Context(), &kernel.Job{PID: 1}, &schema.StepEndInput{Host: "h", Session: "s", Tool: "Bash", Use: &use}); !errors.Is(err, fault.JournalUnavailable) {
		t.Errorf("it is not said: %v", err)
	}
	w.Close()
	w.mu.Lock()
	w.refuses = false
	w.mu.Unlock()
	w.open()
	w.enter(2, "a")
	w.want("a:1 call +0 ~1 -0 unknown")
	if n := w.begin(2, "u"); n != 2 {
		t.Errorf("the next step is %d", n)
	}
	again := w.steps.View().Of("a")[0].StepState
	if _, err := w.Do(t.Context(), kernel.Own{Request: schema.StepEnded.With(&again)}); err != nil {
		t.Error(err)
	}
	w.want("a:1 call +0 ~1 -0 unknown")
}

// TestKilled: what a program changed in a tree when its kernel was killed is its, although nothing says in which call.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	store := filepath.Join(w.state, "steps")
	entries := testkit.Value(os.ReadDir(store))(t)
	used, text := "", []byte(nil)
	for _, entry := range entries {
		if entry.IsDir() {
			used = filepath.Join(store, entry.Name(), "used")
			text = testkit.Value(os.ReadFile(used))(t)
		}
	}
	w.Close()
	testkit.Must(t, os.WriteFile(used, text, 0o600)) // as it is when nobody closes it
	w.write("a", "2")
	w.open()
	w.enter(2, "b")
	w.want("a:1 background +0 ~1 -0 unknown with outside")
}

// TestUndoOfEnded: a tree in which nobody works is opened for an undo. Another plan than the one that was shown is refused.
func TestUndoOfEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.write("a", "2")
	w.Leave(1)
	w.Close()
	w.open()
	dry, one := true, int64(1)
	ask := &schema.StepUndoInput{Agent: "a", Tree: w.path("a"), Step: &one, DryRun: &dry}
	shown, err := w.Undo(t.Context(), &kernel.Job{}, &step.Undo{StepUndoInput: ask})
	testkit.Must(t, err)
	if w.read("a") != "2" || shown.Files.Changed != 1 || shown.Step != 0 {
		t.Errorf("a dry run: %+v, a is %s", shown, w.read("a"))
	}
	w.write("a", "3")
	ask.DryRun, ask.Expect = nil, &shown.Plan
	if _, err := w.Undo(t.Context(), &kernel.Job{}, &step.Undo{StepUndoInput: ask}); !errors.Is(err, fault.StepsOtherPlan) {
		t.Errorf("another plan: %v", err)
	}
	w.write("a", "2")
	done, err := w.Undo(t.Context(), &kernel.Job{}, &step.Undo{StepUndoInput: ask})
	testkit.Must(t, err)
	if w.read("a") != "1" || done.Step != 2 {
		t.Errorf("the undo: %+v, a is %s", done, w.read("a"))
	}
	for _, tree := range []string{"/", w.home} {
		ask.Tree = tree
		if _, err := w.Undo(t.Context(), &kernel.Job{}, &step.Undo{StepUndoInput: ask}); !errors.Is(err, fault.StepsNotFound) {
			t.Errorf("in %s: %v", tree, err)
		}
	}
}

// TestChosen: only directories in the home and repositories are kept, a repository whole; one that is too large is named.
func TestChosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := t.TempDir()
	testkit.Must(t, os.MkdirAll(filepath.Join(outside, "repo", ".git"), 0o755))
	testkit.Must(t, os.MkdirAll(filepath.Join(outside, "repo", "sub"), 0o755))
	if why := w.Enter(trees.Newcomer{PID: 1, Agent: "a", Dirs: []string{outside, filepath.Join(outside, "repo", "sub")}, Home: w.home}); len(why) != 1 || !strings.Contains(why[0], "neither") {
		t.Errorf("not covered: %v", why)
	}
	if list := w.Trees.Trees(); len(list) != 2 || list[0].Path != filepath.Join(outside, "repo") || list[0].Agents[0] != "a" || list[0].Why != nil ||
		list[1].Path != outside || list[1].Agents[0] != "a" || list[1].Why == nil || !strings.Contains(*list[1].Why, "neither") {
		t.Errorf("trees: %+v", list)
	}
	w.Close()
	w.settings.MaxFiles = 1
	w.open()
	w.write("a", "")
	w.write("b", "")
	if why := w.Enter(trees.Newcomer{PID: 2, Agent: "b", Dirs: []string{w.path("")}, Home: w.home}); len(why) != 1 || !strings.Contains(why[0], "too large") {
		t.Errorf("a tree that is too large: %v", why)
	}
	if n := w.begin(2, "u"); n != 0 {
		t.Errorf("a tool call in it is step %d", n)
	}
	for _, entry := range testkit.Value(os.ReadDir(filepath.Join(w.state, "steps")))(t) {
		if list, err := os.ReadDir(filepath.Join(w.state, "steps", entry.Name())); err == nil && len(list) > 2 {
			root, _ := os.ReadFile(filepath.Join(w.state, "steps", entry.Name(), "root"))
			if string(root) == w.path("") {
				t.Errorf("what was stored of it is still there: %v", list)
			}
		}
	}
}

// TestPeriod: a program without hooks that is quiet has made a step, although nobody asks; a look at the list does not end its period.
func TestPeriod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1")
	w.enter(1, "a")
	w.write("a", "2")
	testkit.Must(t, w.Settle(t.Context(), false))
	if n := len(w.steps.View().Of("a")); n != 0 {
		t.Errorf("a look has made %d steps", n)
	}
	testkit.Eventually(t, "the step of a quiet program", func() bool { return len(w.steps.View().Of("a")) == 1 })
}

// TestDiffInParts: a long diff is had in parts, and only what is asked for is in it.
func TestDiffInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "1\n")
	w.enter(1, "a")
	w.write("long", strings.Repeat("a line of text\n", 2000))
	w.write("d/b", "2\n")
	w.Leave(1)
	ask := &step.Diff{Records: w.steps.View().Of("a")}
	var whole []byte
	for more := true; more; {
		var part []byte
		var err error
		part, more, err = w.Diff(t.Context(), ask)
		testkit.Must(t, err)
		whole = append(whole, part...)
		ask.Offset = int64(len(whole))
	}
	if n := strings.Count(string(whole), "+a line of text\n"); n != 2000 {
		t.Errorf("%d lines in %d bytes", n, len(whole))
	}
	for path, want := range map[string]string{w.path("d"): "+2", w.path("d/b"): "+2", w.path("a"): ""} {
		part, _, err := w.Diff(t.Context(), &step.Diff{Records: w.steps.View().Of("a"), Path: path})
		if err != nil || strings.Contains(string(part), "long") || !strings.Contains(string(part), want) {
			t.Errorf("below %s: %s, %v", path, part, err)
		}
	}
	if _, _, err := w.Diff(t.Context(), &step.Diff{Records: w.steps.View().Of("a"), Path: "/nowhere"}); !errors.Is(err, fault.StepsNotFound) {
		t.Errorf("elsewhere: %v", err)
	}
}

package trees_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/trees"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// ask implements trees.Config.Ask.
func (w *world) ask(_ context.Context, q *trees.Question) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuses {
		return fault.JournalUnavailable.New("the disk is full")
	}
	w.asked = append(w.asked, *q)
	return nil
}

// hold starts a program of the directory work, which is confined.
func (w *world) hold(pid int64, agent string, writes ...string) {
	w.Helper()
	about := trees.Newcomer{PID: pid, Agent: agent, Dirs: []string{w.path("")}, Home: w.home, Holds: true, Masked: true}
	for _, name := range writes {
		about.Writes = append(about.Writes, w.path(name))
	}
	if why := w.Enter(about); why != nil {
		w.Fatalf("not covered: %v", why)
	}
}

// TestAside: what a call makes of files that programs outside run is taken back at its end, as a step, and asked about; an undo of that
// step puts it back, and an undo of the call takes it back wherever it is.
func TestAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const deep = "1/2/3/4/.mcp.json" // too deep to be masked
	w.write(deep, "theirs")
	w.write("a", "1")
	w.hold(1, "a", ".pwos.toml", "given")
	w.begin(1, "u1")
	w.write("a", "2")
	w.write(".envrc", "run")
	w.write(".Idea/x/y", "run")
	w.write(deep, "its")
	w.write(".pwos.toml", "allowed")
	testkit.Must(t, os.Mkdir(w.path("real"), 0o755))
	testkit.Must(t, os.Symlink("real", w.path(".vscode")))
	told := testkit.Value(w.End(t.Context(), &kernel.Job{PID: 1}, &schema.StepEndInput{Host: "h", Session: "s", Tool: "Bash", Use: new("u1")}))(t)
	if told.Aside.Count != 4 || fmt.Sprint(told.Aside.Items) != fmt.Sprint([]string{w.path(".Idea/x/y"), w.path(".envrc"), w.path(".vscode"), w.path(deep)}) {
		t.Errorf("the agent is told of %+v", told.Aside)
	}
	if got := w.read(".envrc") + w.read(".Idea/x/y") + w.read(deep) + w.read("a") + w.read(".pwos.toml"); got != "nonenonetheirs2allowed" {
		t.Errorf("after the call: %s", got)
	}
	if _, err := os.Lstat(w.path(".vscode")); err == nil {
		t.Error("the link stays")
	}
	w.want("a:1 call +7 ~2 -0 ok", "a:2 undo +0 ~1 -5")
	want := trees.Question{Agent: "a", Tree: w.path(""), Step: 2, Paths: []string{".Idea/x/y", ".envrc", ".vscode", deep}, Count: 4}
	if len(w.asked) != 1 || w.asked[0].Digest == "" {
		t.Fatalf("asked %+v", w.asked)
	}
	if want.Digest = w.asked[0].Digest; fmt.Sprint(w.asked[0]) != fmt.Sprint(want) {
		t.Errorf("asked %+v, want %+v", w.asked[0], want)
	}

	// The same again is the same question, another content another one.
	w.begin(1, "u2")
	w.write(".envrc", "run")
	w.finish(1, "u2")
	w.begin(1, "u3")
	w.write(".envrc", "run")
	w.finish(1, "u3")
	w.begin(1, "u4")
	w.write(".envrc", "other")
	w.finish(1, "u4")
	if len(w.asked) != 4 || w.asked[1].Digest != w.asked[2].Digest || w.asked[2].Digest == w.asked[3].Digest || w.read(".envrc") != "none" {
		t.Errorf("asked %+v", w.asked)
	}

	testkit.Value(w.undo("a", 2))(t)
	w.begin(1, "u5")
	w.finish(1, "u5")
	if got := w.read(".envrc") + w.read(".Idea/x/y") + w.read(deep); got != "runrunits" {
		t.Errorf("put back: %s", got)
	}
	testkit.Value(w.undo("a", 1))(t)
	if got := w.read(".envrc") + w.read(".Idea/x/y") + w.read(deep) + w.read("a"); got != "nonenonetheirs1" {
		t.Errorf("after the undo of the call: %s", got)
	}
	if w.frozen.Load() != 0 {
		t.Error("an agent is still frozen")
	}
}

// TestMasked: what a program can only read, a person has changed, unless it was away, or the file has another name.
func TestMasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(".vscode/settings.json", "1")
	w.write(".idea/x", "1")
	w.write(".mcp.json", "1")
	testkit.Must(t, os.Link(w.path(".mcp.json"), w.path("linked")))
	w.hold(1, "a")
	change := func(n int) string {
		w.begin(1, "u")
		for _, name := range []string{".vscode/settings.json", ".idea/x", ".idea/new", "linked"} {
			w.write(name, fmt.Sprint(n))
		}
		w.finish(1, "u")
		return w.read(".vscode/settings.json") + w.read(".idea/x") + w.read(".idea/new") + w.read(".mcp.json")
	}
	if got := change(2); got != "2221" {
		t.Errorf("a person's changes: %s", got)
	}
	w.Away(1, "settings.json")
	w.Away(2, "")
	if got := change(3); got != "2331" {
		t.Errorf("after it was away: %s", got)
	}
	w.Away(1, "")
	if got := change(4); got != "2331" {
		t.Errorf("after all may have been away: %s", got)
	}
}

// TestNotHeld: what no confined program can have made stays.
func TestNotHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("sub/x", "")
	testkit.Must(t, os.Mkdir(w.path(".git"), 0o755))
	about := trees.Newcomer{PID: 1, Agent: "a", Dirs: []string{w.path("sub")}, Home: w.home, Holds: true}
	if why := w.Enter(about); why != nil {
		t.Fatal(why)
	}
	w.begin(1, "u")
	w.write(".envrc", "a person's")
	w.write("sub/.envrc", "its")
	w.finish(1, "u")
	if got := w.read(".envrc") + w.read("sub/.envrc"); got != "a person'snone" {
		t.Errorf("there are %s", got)
	}
	w.Leave(1)
	w.enter(2, "off") // it is not confined
	w.begin(2, "u")
	w.write("sub/.envrc", "its")
	w.finish(2, "u")
	if w.read("sub/.envrc") != "its" {
		t.Error("what a program has made that is not confined is set aside")
	}
}

// TestAsideHard: many files are one question, which is asked when the journal takes it; what cannot be restored is removed; an undo while
// something is to be set aside, and the end of a program, set it aside.
func TestAsideHard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings.MaxFile = 100
	w.Close()
	w.open()
	const deep = "1/2/3/4/.mcp.json"
	w.write(deep, strings.Repeat("x", 1000))
	w.hold(1, "a")
	w.begin(1, "u1")
	const many = 10_000
	for i := range many {
		testkit.Must(t, os.MkdirAll(w.path(fmt.Sprint(i)), 0o755))
		testkit.Must(t, os.WriteFile(w.path(fmt.Sprint(i, "/.envrc")), nil, 0o644))
	}
	w.write(deep, "its")
	w.mu.Lock()
	w.refuses = true
	w.mu.Unlock()
	_, err := w.End(t.Context(), &kernel.Job{PID: 1}, &schema.StepEndInput{Host: "h", Session: "s", Tool: "Bash", Use: new("u1")})
	if err == nil || len(w.asked) != 0 {
		t.Errorf("asked %d, %v", len(w.asked), err)
	}
	if left := testkit.Value(filepath.Glob(w.path("*/.envrc")))(t); left != nil || w.read(deep) != "none" {
		t.Errorf("%d are left, and %s", len(left), w.read(deep))
	}
	w.mu.Lock()
	w.refuses = false
	w.mu.Unlock()
	testkit.Must(t, w.Settle(t.Context(), true))
	if len(w.asked) != 1 || w.asked[0].Count != many+1 || len(w.asked[0].Paths) != 20 {
		t.Errorf("asked %+v", w.asked)
	}
	w.hold(2, "b")
	w.write("b/.mcp.json", "its")
	if _, err := w.undo("a", 1); !errors.Is(err, fault.StepsConflict) { // what there was before is not in the store
		t.Error(err)
	}
	if w.read("b/.mcp.json") != "none" {
		t.Error("an undo sets nothing aside")
	}
	w.write("b/.mcp.json", "again")
	w.Leave(2)
	if w.read("b/.mcp.json") != "none" || len(w.asked) != 3 {
		t.Errorf("the end of a program sets nothing aside: asked %+v", w.asked)
	}
}

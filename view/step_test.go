package view_test

import (
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// step is a step of claude in a directory, which changed one file.
func step(n int64, kind string, undoes ...int64) schema.StepState {
	s := schema.StepState{Agent: "claude", Step: n, Tree: "/home/me/shop", Kind: kind, Tool: "claude/Bash", Undoes: undoes, Ended: noon.UnixMilli()}
	s.Files = schema.StepFiles{Changed: 1, Items: []schema.StepFile{{Path: "a.ts", What: "changed"}}}
	return s
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestUndone(t *testing.T) {
	t.Parallel()
	elsewhere := step(2, schema.StepCall)
	elsewhere.Tree = "/home/me/other"
	for name, tt := range map[string]struct {
		steps []schema.StepState
		want  []int64
	}{
		"none":                   {[]schema.StepState{step(1, schema.StepCall), step(2, schema.StepCall)}, []int64{0, 0}},
		"one":                    {[]schema.StepState{step(1, schema.StepCall), step(2, schema.StepCall), step(3, schema.StepOfUndo, 1)}, []int64{3, 0, 0}},
		"of another directory":   {[]schema.StepState{elsewhere, step(3, schema.StepOfUndo, 2)}, []int64{0, 0}},
		"again":                  {[]schema.StepState{step(1, schema.StepCall), step(2, schema.StepOfUndo, 1), step(3, schema.StepOfUndo, 2)}, []int64{0, 3, 0}},
		"three times":            {[]schema.StepState{step(1, schema.StepCall), step(2, schema.StepOfUndo, 1), step(3, schema.StepOfUndo, 2), step(4, schema.StepOfUndo, 3)}, []int64{2, 0, 4, 0}},
		"older ones are unknown": {[]schema.StepState{step(8, schema.StepOfUndo, 1, 2)}, []int64{0}},
	} {
		for i, s := range view.Undone(tt.steps) {
			if s.UndoneBy != tt.want[i] {
				t.Errorf("%s: step %d is undone by %d, want %d", name, s.Step, s.UndoneBy, tt.want[i])
			}
		}
	}
}

func TestStepTable(t *testing.T) {
	t.Parallel()
	failed, shared, hostile, undo := step(2, schema.StepCall), step(3, schema.StepBackground), step(4, schema.StepActivity), step(7, schema.StepOfUndo, 1, 2, 3, 5)
	failed.Result, failed.Files = new("failed"), schema.StepFiles{Made: 3, Removed: 1, Missed: 2, Items: []schema.StepFile{{Path: "src/cart.ts", What: "made"}}}
	shared.Shared, shared.Tool, shared.Files, shared.Programs.Count = true, "background", schema.StepFiles{}, 3
	commit := step(8, schema.StepCall)
	commit.Files = schema.StepFiles{Made: 5, Changed: 1, Items: []schema.StepFile{{Path: ".git/HEAD", What: "changed"}, {Path: "sub/.git/HEAD", What: "changed"}}}
	hostile.Agent, hostile.Tool, hostile.Files.Items[0].Path = "a\x1b[2J", "claude/mcp__github__create_issue\n", "\x1b]0;x\x07"+strings.Repeat("long/", 30)
	hostile.Ended = noon.AddDate(0, 0, -1).UnixMilli()
	undo.Tool = "undo"
	list := view.Undone([]schema.StepState{step(1, schema.StepCall), failed, shared, hostile, undo, commit})
	const want = `
STEP          TIME          TOOL              FILES  WHAT
claude:1      12:00:00      Bash              ~1     undone: a.ts
claude:2      12:00:00      Bash              +3 -1  undone, failed, 2 not kept…
claude:3      12:00:00      background        ·      undone, shared: programs: 3
a\u001b[2J:4  Nov 20 12:00  mcp__github__...  ~1     \u001b]0;x\u0007long/long/…
claude:7      12:00:00      undo              ~1     of 1-3, 5: a.ts
claude:8      12:00:00      Bash              +5 ~1  .git, 5 more
`
	if got := "\n" + view.StepTable(list, noon, 80, view.Plain).Text(); got != want {
		t.Errorf("%s\nwant%s", got, want)
	}
	other := step(9, schema.StepCall)
	other.Tree = "/srv/b"
	text := view.StepTable(view.Undone([]schema.StepState{step(8, schema.StepCall), other}), noon, 0, view.Plain).Text()
	if !strings.Contains(text, "shop/a.ts") || !strings.Contains(text, "b/a.ts") {
		t.Errorf("two directories are not told apart:\n%s", text)
	}
}

func TestWholeStep(t *testing.T) {
	t.Parallel()
	s := step(12, schema.StepCall)
	s.PID, s.Cause, s.Result, s.Shared, s.With, s.Began = 7, 341, new("failed"), true, []string{"codex:8"}, s.Ended-1300
	s.Files = schema.StepFiles{Made: 1, Changed: 20, Missed: 1, Items: []schema.StepFile{{Path: ".git/HEAD", What: "changed"}, {Path: "a\x1b", What: "made"}, {Path: "big.bin", What: "missed"}, {Path: "new", What: "made"}, {Path: "new/dir", What: "made"}, {Path: "new/dir/f", What: "made"}, {Path: "src", What: "changed"}, {Path: "src/f", What: "made"}}}
	s.Programs = schema.StepItems{Count: 3, Refused: 1, Items: []string{"/usr/bin/git push"}}
	second := step(12, schema.StepCall)
	second.Tree, second.Files = "/srv/b", schema.StepFiles{}
	got := view.WholeStep(view.Undone([]schema.StepState{s, second, step(14, schema.StepOfUndo, 12)})[:2], new("fix the\ncart"), view.Plain).Text()
	for _, want := range []string{
		"step         claude:12 of pid 7\n", "tool         claude/Bash, failed\n", ", for 1.3s\n", `cause        entry 341: "pwos why 341"`,
		"directory    /home/me/shop\n  made       a\\u001b\n  not kept   big.bin\n  made       new/dir/f\n  changed    src\n  made       src/f\n  .git       1 of its files\n             and 14 more\n",
		"programs     3, 1 of them refused\n             /usr/bin/git push\n             and 2 more\n",
		"shared with  codex:8: what is whose is not known\n", "undone by    claude:14\n", "directory    /srv/b\nfiles        none\n", "prompt       fix the",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Count(got, "claude:12 of pid") != 1 || strings.Count(got, "undone by") != 1 {
		t.Errorf("what is of the step, or of one directory, is told twice:\n%s", got)
	}
}

func TestUndoPlan(t *testing.T) {
	t.Parallel()
	plan := &schema.StepUndoOutput{Agent: "claude", Tree: "/home/me/shop", Steps: []int64{4, 3}, Shared: []string{"codex:8"}, Conflicts: []schema.StepConflict{{Path: "b\x1b", Why: "it was changed since"}}}
	plan.Files = schema.StepFiles{Changed: 20, Removed: 1}
	for i := range 20 {
		plan.Files.Items = append(plan.Files.Items, schema.StepFile{Path: string(rune('a' + i)), What: "changed"})
	}
	got := view.UndoPlan(plan, view.Plain).Text()
	for _, want := range []string{"takes back   claude:3-4\ndirectory    /home/me/shop\n  changes    a\n", "  changes    l\n             and 9 more\n", "  conflict   b\\u001b: it was changed since\n", "shared with  codex:8: "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	plan.Step = 15
	if got, want := view.UndoneText(plan), `undid claude:3-4 in /home/me/shop (~20 -1), 1 left as they are; to revert the undo: "pwos undo claude:15"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

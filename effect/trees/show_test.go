package trees_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// noPrompts has no prompts.
type noPrompts struct{}

func (noPrompts) Latest(int64, string, string) *schema.StepPrompt { return nil }
func (noPrompts) Text(string) (string, error)                     { return "", nil }
func (noPrompts) Forget(time.Time) error                          { return nil }

// TestChanged: the steps that changed a path are found by the whole of what they changed, whatever their records list, the last of them first.
func TestChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("z", "1")
	w.enter(1, "a")
	w.begin(1, "u1")
	for n := range 200 { // more than a record lists
		w.write(fmt.Sprintf("many/%03d", n), "1")
	}
	w.write("z", "2")
	w.finish(1, "u1")
	w.begin(1, "u2")
	w.write("many/000", "2")
	w.finish(1, "u2")
	w.all()
	for path, want := range map[string]string{
		w.path("z"): "[1]", w.path("many/199"): "[1]", w.path("many/000"): "[1 2]", w.path("many"): "[1 2]", w.path(""): "[1 2]",
		w.path("many/00"): "[]", w.path("zz"): "[]", w.home: "[]", filepath.Dir(w.home): "[]", "/": "[]",
	} {
		got := []int64{}
		for _, r := range testkit.Value(w.Changed(t.Context(), w.steps.View().Of(""), path, 10))(t) {
			got = append(got, r.Step)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: steps %v, want %s", path, got, want)
		}
	}
	if last := testkit.Value(w.Changed(t.Context(), w.steps.View().Of(""), w.path("many/000"), 1))(t); len(last) != 1 || last[0].Step != 2 {
		t.Errorf("the last is %+v", last)
	}
}

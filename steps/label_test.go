package steps_test

import (
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/steps"
)

// TestExcept: a change that the label excepts is in no step.
func TestExcept(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{})
	tr.write("a", "1")
	tr.write("b", "1")
	label := steps.Label{Kind: steps.Call, Except: func(path string) bool { return path == "a" }}
	if step := tr.cut(label); len(step.Changes) != 1 || step.Changes[0].Path != "b" {
		t.Errorf("changes are %+v", step.Changes)
	}
	if step := tr.cut(steps.Label{Kind: steps.Call}); step != nil {
		t.Errorf("later they are %+v", step.Changes)
	}
}

// TestAlways: a step that its label says is always recorded is, with its note, although nothing changed.
func TestAlways(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{})
	if step := testkit.Value(tr.store.Cut(t.Context(), steps.Label{Kind: steps.Call, Note: []byte("n")}))(t); step != nil {
		t.Errorf("a step without a change: %+v", step)
	}
	before, _ := tr.store.Events()
	made := testkit.Value(tr.store.Cut(t.Context(), steps.Label{Kind: steps.Call, Note: []byte("note"), Always: true}))(t)
	if got := testkit.Value(tr.store.Step(t.Context(), made.Seq))(t); string(got.Note) != "note" || got.Digest != made.Digest {
		t.Errorf("it is %+v, made %+v", got, made)
	}
	if after, all := tr.store.Events(); all && after != before {
		t.Errorf("%d events, although nothing happened", after-before)
	}
}

package steps_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/steps"
)

// stored reports whether a text is stored anywhere, as what is compressed has it.
func (t *tree) stored(text string) bool {
	t.Helper()
	for _, name := range testkit.Value(os.ReadDir(t.dir))(t) {
		if strings.Contains(testkit.ReadFile(t.T, filepath.Join(t.dir, name.Name())), text) {
			return true
		}
	}
	return false
}

// noise returns text that compression leaves as it is.
func noise(n int) string {
	text := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(text)
	return string(text)
}

// TestRedactPath: what a path had before and after a step, and since, goes, wherever else it is; what was before that stays, and so does all
// else. An undo that needs what is gone says that it is missing.
func TestRedactPath(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{})
	secret := noise(200)
	tr.write("d/f", "first")
	first := tr.step(func() { tr.write("d/f", "second") })
	second := tr.step(func() { tr.write("d/f", secret); tr.write("g", secret); tr.write("h", "kept") })
	third := tr.step(func() { tr.write("d/f", "last"); testkit.Must(t, os.Remove(filepath.Join(tr.root, "g"))) })
	fourth := tr.step(func() { tr.write("h", "kept too") })
	testkit.Must(t, tr.store.Close())
	if !tr.stored(secret[:50]) {
		t.Fatal("the test cannot see what is stored")
	}
	tr.open()
	r := steps.Redaction{Path: "d", From: second.Seq, To: second.Seq}
	if !testkit.Value(steps.Holds(t.Context(), tr.dir, nil, r))(t) {
		t.Error("the store is not found to hold it")
	}
	if got := testkit.Value(tr.store.Redact(t.Context(), r))(t); got.Contents != 3 || !slices.Equal(got.Paths, []string{"d/f"}) {
		t.Errorf("%+v", got)
	}
	if testkit.Value(steps.Holds(t.Context(), tr.dir, nil, r))(t) {
		t.Error("the store is found to hold it still")
	}
	for range 2 { // and after it was opened again
		for _, step := range []*steps.Step{second, third} {
			done := tr.undo(steps.UndoOptions{DryRun: true}, step)
			if !slices.ContainsFunc(done.Conflicts, func(c steps.Conflict) bool { return c.Missing }) {
				t.Errorf("step %d: %+v", step.Seq, done.Conflicts)
			}
			if got := testkit.Value(tr.store.Step(t.Context(), step.Seq))(t); got.Digest != step.Digest {
				t.Errorf("step %d is another one", step.Seq)
			}
		}
		if done := tr.undo(steps.UndoOptions{DryRun: true}, fourth); len(done.Conflicts) > 0 {
			t.Errorf("another path: %+v", done.Conflicts)
		}
		if text, err := tr.store.Content(t.Context(), first.Changes[0].Before); string(text) != "first" {
			t.Errorf("what was before: %q, %v", text, err)
		}
		if tr.stored(secret[:50]) {
			t.Error("it is still stored")
		}
		tr.again()
	}
	if done := tr.undo(steps.UndoOptions{}, fourth); len(done.Conflicts) > 0 || testkit.ReadFile(t, filepath.Join(tr.root, "h")) != "kept" {
		t.Errorf("%+v", done)
	}
	var out bytes.Buffer
	testkit.Must(t, tr.store.Diff(t.Context(), &out, steps.Composed([]*steps.Step{second})))
	if strings.Contains(out.String(), secret) {
		t.Error("a diff shows it")
	}
	// Of a step that did not change it, nothing is named.
	if got := testkit.Value(tr.store.Redact(t.Context(), steps.Redaction{Path: "h", From: first.Seq, To: first.Seq}))(t); got.Paths != nil {
		t.Errorf("%+v", got)
	}
}

// TestRedactValue: a content that is the value goes, sealed or not, short or in pieces; so does it in notes. A store that is not open is redacted
// likewise.
func TestRedactValue(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 5 << 20} {
		for _, secret := range []bool{false, true} {
			options := steps.Options{Key: make([]byte, 32), Secret: func(string) bool { return secret }}
			tr := newTree(t, options)
			value := noise(size)
			tr.write("keep", "kept")
			tr.cut(steps.Label{})
			tr.write("f", value)
			step := tr.cut(steps.Label{Kind: steps.Call, Agent: "a", Note: []byte("ran with " + value[:20])})
			kept := tr.step(func() { tr.write("keep", "other") })
			tr.write("f", "gone")
			last := tr.cut(steps.Label{Kind: steps.Call})
			testkit.Must(t, tr.store.Close())
			r := steps.Redaction{Value: []byte(value), Note: func(note []byte) ([]byte, error) {
				return bytes.ReplaceAll(note, []byte(value[:20]), []byte("[redacted]")), nil
			}}
			if !testkit.Value(steps.Holds(t.Context(), tr.dir, options.Key, r))(t) {
				t.Error("the store is not found to hold it")
			}
			if got := testkit.Value(steps.Redact(t.Context(), tr.dir, options.Key, r))(t); got.Contents != 1 || got.Notes != 1 {
				t.Errorf("%+v", got)
			}
			if got := testkit.Value(steps.Redact(t.Context(), tr.dir, options.Key, r))(t); got.Contents+got.Notes != 0 {
				t.Errorf("again: %+v", got)
			}
			if tr.stored(value[:20]) || tr.stored(value[size/2:size/2+20]) {
				t.Error("it is still stored")
			}
			if again := tr.open(); again != nil {
				t.Errorf("the tree was not known any more: %+v", again)
			}
			if got := testkit.Value(tr.store.Step(t.Context(), step.Seq))(t); string(got.Note) != "ran with [redacted]" {
				t.Errorf("the note is %q", got.Note)
			}
			if done := tr.undo(steps.UndoOptions{DryRun: true}, last); len(done.Conflicts) != 1 || !done.Conflicts[0].Missing {
				t.Errorf("%+v", done.Conflicts)
			}
			if done := tr.undo(steps.UndoOptions{}, kept); len(done.Conflicts) > 0 {
				t.Errorf("%+v", done.Conflicts)
			}
		}
	}
	if got, err := steps.Redact(t.Context(), t.TempDir(), nil, steps.Redaction{Value: []byte("x")}); err != nil || got.Contents != 0 {
		t.Errorf("no store: %+v, %v", got, err)
	}
}

// TestRedactAfterACrash: what a crash has left of a generation before is removed by the next redaction.
func TestRedactAfterACrash(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{})
	secret := noise(100)
	step := tr.step(func() { tr.write("f", secret) })
	left := filepath.Join(tr.dir, "content-1")
	old := testkit.ReadFile(t, left)
	r := steps.Redaction{Path: "f", From: step.Seq, To: step.Seq}
	testkit.Value(tr.store.Redact(t.Context(), r))(t)
	testkit.Must(t, os.WriteFile(left, []byte(old), 0o600))
	testkit.Value(tr.store.Redact(t.Context(), r))(t)
	if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

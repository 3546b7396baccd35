package steps_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/steps"
)

// changed returns the paths of a step, and its gaps with a question mark.
func changed(s *steps.Step) string {
	if s == nil {
		return "none"
	}
	var list []string
	for _, c := range s.Changes {
		list = append(list, c.Path)
	}
	for _, g := range s.Gaps {
		list = append(list, g.Path+"?")
	}
	return strings.Join(list, " ")
}

// TestTooManyFiles: a tree that gets more files than it may is covered as far as it fits. Steps tell once what does not, and
// when it fits again all of it is covered.
func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{MaxFiles: 8})
	tr.write("a", "1")
	tr.write("d/known", "1")
	tr.write("d/e/deep", "1")
	tr.cut(steps.Label{})
	want := func(paths string) {
		t.Helper()
		if got := changed(tr.cut(steps.Label{})); got != paths {
			t.Errorf("the step has %q, want %q", got, paths)
		}
	}
	for i := range 9 {
		tr.write(fmt.Sprint("many/", i), "1")
	}
	want("many many?")
	tr.write("a", "2")
	want("a")
	tr.write("many/0", "2")
	want("many?")
	for i := range 9 {
		tr.write(fmt.Sprint("d/", i), "1")
	}
	want("d?")
	tr.write("d/e/deep", "2") // below what is not covered, but known
	want("d/e/deep")
	if status := testkit.Value(tr.store.Status(t.Context()))(t); !errors.Is(status.Partial, steps.ErrTooLarge) {
		t.Errorf("the status is %+v", status)
	}
	tr.write("d/e/deep", "3")
	if step := testkit.Value(tr.store.Fill(t.Context(), steps.Label{}))(t); changed(step) != "none" { // by a walk
		t.Errorf("it has %q", changed(step))
	}
	for i := range 9 {
		testkit.Must(t, errors.Join(os.Remove(filepath.Join(tr.root, fmt.Sprint("d/", i))), os.Remove(filepath.Join(tr.root, fmt.Sprint("many/", i)))))
	}
	tr.write("many/sub/0", "1")
	want("d/e/deep many/sub many/sub/0")
	tr.write("many/sub/0", "2")
	want("many/sub/0")
	if status := testkit.Value(tr.store.Status(t.Context()))(t); status.Partial != nil || status.Files != 8 {
		t.Errorf("the status is %+v", status)
	}
	tr.write("d/more", "1")
	if step := tr.again(); changed(step) != "d?" {
		t.Errorf("opened again, it has %q", changed(step))
	}
}

// TestStoreFull: what changes while a store is full is told, and stored as soon as there is room, so that later changes can be undone.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{MaxBytes: 1 << 20})
	noise := make([]byte, 2<<20)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	tr.write("big", string(noise))
	tr.cut(steps.Label{})
	tr.write("a", "does not fit")
	lost := tr.cut(steps.Label{})
	if changed(lost) != "a a?" {
		t.Errorf("the step has %q", changed(lost))
	}
	if status := testkit.Value(tr.store.Status(t.Context()))(t); status.Partial == nil {
		t.Error("the status does not say so")
	}
	testkit.Must(t, os.Remove(filepath.Join(tr.root, "big")))
	tr.cut(steps.Label{})
	tr.write("b", "")
	tr.cut(steps.Label{})
	testkit.Must(t, tr.store.Collect(t.Context(), time.Now(), 1))
	if step := tr.cut(steps.Label{}); step != nil {
		t.Errorf("what is stored late is a change: %q", changed(step))
	}
	tr.write("a", "fits")
	step := tr.cut(steps.Label{})
	done := testkit.Value(tr.store.Undo(t.Context(), []uint64{step.Seq}, steps.UndoOptions{}))(t)
	if text := testkit.ReadFile(t, filepath.Join(tr.root, "a")); text != "does not fit" {
		t.Errorf("after the undo: %q, %+v", text, done.Conflicts)
	}
}

// TestUndoOfLost: a step whose content was stored late is undone.
func TestUndoOfLost(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{MaxBytes: 1 << 20})
	noise := make([]byte, 2<<20)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	tr.write("big", string(noise))
	tr.cut(steps.Label{})
	testkit.Must(t, os.Remove(filepath.Join(tr.root, "big")))
	tr.cut(steps.Label{})
	tr.write("a", "does not fit")
	lost := tr.cut(steps.Label{})
	testkit.Must(t, tr.store.Collect(t.Context(), time.Now(), 1))
	tr.cut(steps.Label{})
	done := testkit.Value(tr.store.Undo(t.Context(), []uint64{lost.Seq}, steps.UndoOptions{}))(t)
	if _, err := os.Stat(filepath.Join(tr.root, "a")); err == nil {
		t.Errorf("it is still there: %+v", done.Conflicts)
	}
}

// TestSealed: a store tells whether it needs its key.
func TestSealed(t *testing.T) {
	t.Parallel()
	for _, secret := range []bool{false, true} {
		tr := newTree(t, steps.Options{Key: make([]byte, 32), Secret: func(string) bool { return secret }})
		tr.write("a", "1")
		tr.cut(steps.Label{})
		testkit.Must(t, tr.store.Close())
		if got := testkit.Value(steps.Sealed(tr.dir))(t); got != secret {
			t.Errorf("it is sealed: %v, want %v", got, secret)
		}
		tr.open()
	}
	if sealed, err := steps.Sealed(t.TempDir()); sealed || err != nil {
		t.Errorf("no store: %v, %v", sealed, err)
	}
}

package steps_test

import (
	"bytes"
	"context"
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

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/steps"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// tree is a directory, and the store of its steps.
type tree struct {
	*testing.T
	dir, root string
	store     *steps.Store
	options   steps.Options
}

func newTree(t *testing.T, options steps.Options) *tree {
	t.Helper()
	tr := &tree{T: t, dir: filepath.Join(t.TempDir(), "store"), root: t.TempDir(), options: options}
	tr.open()
	t.Cleanup(func() {
		testkit.Must(t, tr.store.Close())
		tr.store = nil // the function is kept until all tests have ended, and a store has a few MiB
	})
	return tr
}

func (t *tree) open() *steps.Step {
	t.Helper()
	t.store = testkit.Value(steps.Open(t.dir, t.root, t.options))(t)
	return testkit.Value(t.store.Fill(t.Context(), steps.Label{Kind: steps.Outside}))(t)
}

// again closes the store and opens it.
func (t *tree) again() *steps.Step {
	t.Helper()
	testkit.Must(t, t.store.Close())
	return t.open()
}

func (t *tree) write(name, text string) {
	t.Helper()
	path := filepath.Join(t.root, name)
	testkit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
}

func (t *tree) cut(label steps.Label) *steps.Step {
	t.Helper()
	return testkit.Value(t.store.Cut(t.Context(), label))(t)
}

// step makes a step of an agent that writes.
func (t *tree) step(do func()) *steps.Step {
	t.Helper()
	t.cut(steps.Label{Kind: steps.Outside})
	do()
	return t.cut(steps.Label{Kind: steps.Call, Agent: "a", Tool: "Bash"})
}

func (t *tree) undo(options steps.UndoOptions, list ...*steps.Step) *steps.Undone {
	t.Helper()
	var seqs []uint64
	for _, s := range list {
		seqs = append(seqs, s.Seq)
	}
	options.Before = steps.Label{Kind: steps.Outside}
	return testkit.Value(t.store.Undo(t.Context(), seqs, options))(t)
}

// entry is what a test sees of a path.
type entry struct {
	Mode fs.FileMode
	Text string
}

// copied returns the whole tree as a test sees it.
func (t *tree) copied() map[string]entry {
	t.Helper()
	all := make(map[string]entry)
	testkit.Must(t, filepath.WalkDir(t.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == t.root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{Mode: info.Mode()}
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			e.Text = string(text)
		case info.Mode().Type() == fs.ModeSymlink:
			if e.Text, err = os.Readlink(path); err != nil {
				return err
			}
		}
		all[path[len(t.root)+1:]] = e
		return nil
	}))
	return all
}

func (t *tree) same(what string, want map[string]entry) {
	t.Helper()
	if diff := cmp.Diff(want, t.copied()); diff != "" {
		t.Fatalf("%s (-want +got):\n%.3000s", what, diff)
	}
}

// session makes random changes, as programs and persons do.
type session struct {
	*tree
	rand *rand.Rand
}

func (s *session) name() string {
	var parts []string
	for range 1 + s.rand.IntN(3) {
		parts = append(parts, string(rune('a'+s.rand.IntN(4))))
	}
	return filepath.Join(s.root, filepath.Join(parts...))
}

func (s *session) text() []byte {
	switch s.rand.IntN(12) {
	case 0:
		return nil
	case 1:
		return bytes.Repeat([]byte{byte(s.rand.Uint32()), 0}, 1+s.rand.IntN(40_000))
	}
	return fmt.Appendf(nil, "\x00%d", s.rand.IntN(50)) // no text, so that nothing is merged
}

// act makes one change. It may fail, as those of programs may.
func (s *session) act() {
	path := s.name()
	switch s.rand.IntN(14) {
	case 0, 1, 2, 3:
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		_ = os.WriteFile(path, s.text(), 0o644)
	case 4:
		_ = os.RemoveAll(path)
	case 5:
		_ = os.Rename(path, s.name())
	case 6:
		_ = os.Mkdir(path, 0o755)
	case 7:
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSymlink {
			_ = os.Chmod(path, []fs.FileMode{0o700, 0o755, 0o744, 0o777}[s.rand.IntN(4)])
		}
	case 8:
		_ = os.Symlink([]string{"a", "nowhere", "../a"}[s.rand.IntN(3)], path)
	case 9:
		if file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err == nil {
			_, _ = file.Write(s.text())
			_ = file.Close()
		}
	case 10: // in place, with the time that it had
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() > 1 {
			if file, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				_, _ = file.WriteAt([]byte{byte(s.rand.Uint32())}, 1)
				_ = file.Close()
				_ = os.Chtimes(path, info.ModTime(), info.ModTime())
			}
		}
	case 11:
		_ = os.Link(path, s.name())
	case 12: // a file where there was a directory
		_ = os.RemoveAll(path)
		_ = os.WriteFile(path, s.text(), 0o600)
	case 13: // as editors save
		_ = os.WriteFile(path+".new", s.text(), 0o644)
		_ = os.Rename(path+".new", path)
	}
}

func (s *session) acts(most int) {
	for range s.rand.IntN(most) {
		s.act()
	}
}

// past is what a test remembers of a step.
type past struct {
	step          *steps.Step
	before, after map[string]entry
}

// expected returns what the tree is after the undo of a step, or false if there are conflicts.
func (p past) expected(now map[string]entry) (map[string]entry, bool) {
	want := maps.Clone(now)
	var removed []string
	for path := range union(p.before, p.after) {
		before, after := p.before[path], p.after[path]
		if before == after {
			continue
		}
		switch got := now[path]; {
		case got == after && before == entry{}:
			removed = append(removed, path)
		case got == after:
			want[path] = before
		case got == before:
		case got.Mode.IsDir() && after.Mode.IsDir() && before == entry{}:
			removed = append(removed, path)
		case got != entry{} && after != entry{} && before != entry{} && got.Mode.Type() == after.Mode.Type() && got.Mode.Type() == before.Mode.Type():
			mode, ok := three(after.Mode, got.Mode, before.Mode)
			text, okText := three(after.Text, got.Text, before.Text)
			if !ok || !okText {
				return nil, false
			}
			want[path] = entry{mode, text}
		default:
			return nil, false
		}
	}
	slices.Sort(removed)
	for _, path := range slices.Backward(removed) {
		if now[path].Mode.IsDir() && holds(want, path) {
			continue
		}
		delete(want, path)
	}
	for path := range maps.Clone(want) {
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			above, ok := want[dir]
			if !ok {
				want[dir] = entry{Mode: fs.ModeDir | 0o755}
			} else if !above.Mode.IsDir() {
				return nil, false
			}
		}
	}
	return want, true
}

func three[V comparable](after, now, before V) (V, bool) {
	switch {
	case now == after:
		return before, true
	case after == before, now == before:
		return now, true
	}
	return now, false
}

func holds(all map[string]entry, dir string) bool {
	for path := range all {
		if strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

func union(a, b map[string]entry) map[string]bool {
	all := make(map[string]bool)
	for path := range a {
		all[path] = true
	}
	for path := range b {
		all[path] = true
	}
	return all
}

// TestSessions makes random steps, changes of others and undos in any order, and compares the tree with independent copies after each.
func TestSessions(t *testing.T) {
	t.Parallel()
	for seed := range testkit.Rounds(60, 20, 10_000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := &session{tree: newTree(t, steps.Options{}), rand: rand.New(rand.NewPCG(uint64(seed), 7))}
			var all []past
			for range 30 {
				switch {
				case s.rand.IntN(8) == 0:
					s.acts(3) // an outsider, while the store is closed
					before := s.copied()
					s.again()
					s.same("after a restart", before)
				case s.rand.IntN(3) > 0 || len(all) == 0:
					s.acts(4) // an outsider
					s.cut(steps.Label{Kind: steps.Outside})
					before := s.copied()
					s.acts(12)
					if step := s.cut(steps.Label{Kind: steps.Call, Agent: "a"}); step != nil {
						all = append(all, past{step, before, s.copied()})
					}
				default:
					p := all[s.rand.IntN(len(all))]
					now := s.copied()
					want, ok := p.expected(now)
					done := s.undo(steps.UndoOptions{}, p.step)
					switch {
					case ok && len(done.Conflicts) > 0:
						t.Fatalf("undo of step %d: %v, want none", p.step.Seq, done.Conflicts)
					case !ok && len(done.Conflicts) == 0:
						t.Fatalf("undo of step %d: no conflict", p.step.Seq)
					case !ok:
						s.same("after conflicts", now)
					default:
						s.same(fmt.Sprintf("after the undo of step %d", p.step.Seq), want)
					}
				}
			}
		})
	}
}

// TestUndoAll takes back all steps of an agent, of which the last is undone first.
func TestUndoAll(t *testing.T) {
	t.Parallel()
	for seed := range testkit.Rounds(20, 5, 1000) {
		s := &session{tree: newTree(t, steps.Options{}), rand: rand.New(rand.NewPCG(uint64(seed), 8))}
		s.acts(30)
		s.cut(steps.Label{Kind: steps.Outside})
		before := s.copied()
		var all []*steps.Step
		for range 10 {
			s.acts(12)
			if step := s.cut(steps.Label{Kind: steps.Call, Agent: "a"}); step != nil {
				all = append(all, step)
			}
		}
		if done := s.undo(steps.UndoOptions{}, all...); len(done.Conflicts) > 0 {
			t.Fatalf("%v", done.Conflicts)
		}
		s.same("after the undo of all", before)
	}
}

// TestMerge: the lines of a step go, those that a person wrote in the same file stay.
func TestMerge(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{})
	tr.write("f", "1\n2\n3\n4\n5\n6\n7\n8\n")
	step := tr.step(func() { tr.write("f", "1\nagent\n3\n4\n5\n6\n7\n8\n") })
	tr.write("f", "1\nagent\n3\n4\n5\n6\nperson\n8\n")
	if done := tr.undo(steps.UndoOptions{}, step); len(done.Conflicts) > 0 || done.Step == nil {
		t.Fatalf("%+v", done)
	}
	if got := testkit.ReadFile(t, filepath.Join(tr.root, "f")); got != "1\n2\n3\n4\n5\n6\nperson\n8\n" {
		t.Errorf("the file has %q", got)
	}
	step = tr.step(func() { tr.write("f", "1\n2\n3\nagent\n5\n6\nperson\n8\n") })
	tr.write("f", "1\n2\n3\nperson too\n5\n6\nperson\n8\n")
	tr.write("g", "new")
	before := tr.copied()
	done := tr.undo(steps.UndoOptions{}, step)
	if len(done.Conflicts) != 1 || done.Step != nil {
		t.Fatalf("%+v", done)
	}
	tr.same("after a conflict", before)
}

// TestPartial undoes what can be undone.
func TestPartial(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{})
	tr.write("a", "\x00 1")
	tr.write("b", "\x00 1")
	step := tr.step(func() { tr.write("a", "\x00 2"); tr.write("b", "\x00 2") })
	tr.write("a", "\x00 3")
	done := tr.undo(steps.UndoOptions{Partial: true, DryRun: true}, step)
	if len(done.Changes) != 1 || len(done.Conflicts) != 1 || done.Step != nil {
		t.Fatalf("%+v", done)
	}
	done = tr.undo(steps.UndoOptions{Partial: true}, step)
	if len(done.Changes) != 1 || len(done.Conflicts) != 1 || done.Step == nil {
		t.Fatalf("%+v", done)
	}
	if got := tr.copied(); got["a"].Text != "\x00 3" || got["b"].Text != "\x00 1" {
		t.Errorf("%v", got)
	}
	// The undo is a step.
	if done = tr.undo(steps.UndoOptions{}, done.Step); len(done.Conflicts) > 0 || tr.copied()["b"].Text != "\x00 2" {
		t.Errorf("undo of the undo: %+v", done)
	}
}

// TestLong stores a file of several pieces, of which a change adds only some, and restores it.
func TestLong(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{})
	random := rand.NewChaCha8([32]byte{})
	long := make([]byte, 11<<20)
	_, _ = random.Read(long)
	tr.write("long", string(long))
	before := testkit.Value(tr.store.Status(t.Context()))(t)
	step := tr.step(func() { tr.write("long", string(long[:9<<20])+"x"+string(long[9<<20+1:])) })
	after := testkit.Value(tr.store.Status(t.Context()))(t)
	if grown := after.Bytes - before.Bytes; grown > 16<<20 {
		t.Errorf("the store grew by %d bytes", grown)
	}
	tr.again()
	if done := tr.undo(steps.UndoOptions{}, step); len(done.Conflicts) > 0 {
		t.Fatalf("%v", done.Conflicts)
	}
	if got := testkit.Value(os.ReadFile(filepath.Join(tr.root, "long")))(t); !bytes.Equal(got, long) {
		t.Error("the file has another content")
	}
}

// TestSecret: the content of a secret file is in no file of the store in plain, and is restored with the key alone.
func TestSecret(t *testing.T) {
	t.Parallel()
	const canary = "canary-5d41402a"
	tr := newTree(t, steps.Options{Key: []byte("a key"), Secret: func(path string) bool { return filepath.Base(path) == ".env" }})
	tr.write(".env", canary+"1")
	tr.cut(steps.Label{Kind: steps.Outside})
	step := tr.step(func() { testkit.Must(t, os.Remove(filepath.Join(tr.root, ".env"))) })
	tr.again()
	if found := testkit.FilesWith(t, canary, tr.dir); len(found) > 0 {
		t.Errorf("%s has it in plain", found)
	}
	tr.options.Key = []byte("another key")
	tr.again()
	if done := tr.undo(steps.UndoOptions{}, step); len(done.Conflicts) != 1 || !done.Conflicts[0].Missing {
		t.Errorf("with another key: %+v", done)
	}
	tr.options.Key = []byte("a key")
	tr.again()
	if done := tr.undo(steps.UndoOptions{}, step); len(done.Conflicts) > 0 || tr.copied()[".env"].Text != canary+"1" {
		t.Errorf("%+v", done)
	}
}

// TestBounds: what is not covered is said.
func TestBounds(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{MaxFile: 10})
	tr.write("long", "longer than ten bytes")
	step := tr.cut(steps.Label{Kind: steps.Call})
	if len(step.Gaps) != 1 || step.Gaps[0].Path != "long" {
		t.Errorf("gaps: %v", step.Gaps)
	}
	step = tr.step(func() { testkit.Must(t, os.Remove(filepath.Join(tr.root, "long"))) })
	if done := tr.undo(steps.UndoOptions{}, step); len(done.Conflicts) != 1 || !done.Conflicts[0].Missing {
		t.Errorf("%+v", done)
	}
	small := steps.Options{MaxFiles: 1}
	store := testkit.Value(steps.Open(filepath.Join(t.TempDir(), "s"), tr.root, small))(t)
	defer store.Close()
	tr.write("two", "")
	tr.write("three", "")
	if _, err := store.Fill(t.Context(), steps.Label{Kind: steps.Outside}); !errors.Is(err, steps.ErrTooLarge) {
		t.Errorf("a tree that is too large: %v", err)
	}
	if _, err := store.Cut(context.Background(), steps.Label{}); !errors.Is(err, steps.ErrNotFilled) {
		t.Errorf("a cut of it: %v", err)
	}
}

package steps_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/steps"
)

// TestPowerCuts cuts the power at each operation of sessions, in each way: whatever was recorded before is there afterwards, with all
// contents, and goes on.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	for seed := range testkit.Rounds(6, 2, 300) {
		random := rand.New(rand.NewPCG(uint64(seed), 9))
		disk := faultfs.NewDisk()
		s := &session{tree: &tree{T: t, dir: "/s", root: t.TempDir(), options: steps.Options{FS: disk}}, rand: random}
		var recorded []*steps.Step
		filled := false
		disk.Hook = func(faultfs.Op) {
			if random.IntN(3) > 0 {
				return
			}
			hook := disk.Hook
			disk.Hook = nil
			after := disk.Crash(random, faultfs.Outcome(random.IntN(faultfs.Outcomes)))
			disk.Hook = hook
			recovers(t, after, s.root, filled, recorded)
		}
		s.acts(30)
		s.open()
		filled = true
		for range 8 {
			s.acts(12)
			if step := s.cut(steps.Label{Kind: steps.Call, Agent: "a"}); step != nil {
				recorded = append(recorded, step)
			}
			switch random.IntN(6) {
			case 0:
				s.again()
			case 1:
				forgotten := recorded
				recorded = nil // until it is known which are
				testkit.Must(t, s.store.Collect(t.Context(), time.Now(), 0))
				if len(forgotten) > 0 {
					recorded = forgotten[len(forgotten)-1:]
				}
			}
		}
		testkit.Must(t, s.store.Close())
	}
}

// recovers opens a store that the power was cut from.
func recovers(t *testing.T, disk *faultfs.Disk, root string, filled bool, recorded []*steps.Step) {
	t.Helper()
	store, err := steps.Open("/s", root, steps.Options{FS: disk})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer func() { testkit.Must(t, store.Close()) }()
	for _, want := range recorded {
		got, err := store.Step(t.Context(), want.Seq)
		if err != nil || got.Digest != want.Digest {
			t.Fatalf("step %d: %v", want.Seq, err)
		}
		for _, c := range got.Changes {
			for _, state := range []steps.State{c.Before, c.After} {
				if _, err := store.Content(t.Context(), state); state.Mode&0o100000 != 0 && err != nil {
					t.Fatalf("step %d, %s: %v", want.Seq, c.Path, err)
				}
			}
		}
	}
	if _, err := store.Cut(t.Context(), steps.Label{}); filled && errors.Is(err, steps.ErrNotFilled) {
		t.Fatal("the tree is not known any more")
	}
	if _, err := store.Fill(t.Context(), steps.Label{Kind: steps.Outside}); err != nil {
		t.Fatalf("fill: %v", err)
	}
	testkit.WriteFile(t, filepath.Join(root, "z"), "made after the cut")
	if step := testkit.Value(store.Cut(t.Context(), steps.Label{Kind: steps.Call}))(t); step == nil || len(step.Changes) != 1 {
		t.Fatalf("the step after a cut: %+v", step)
	}
	testkit.Must(t, os.Remove(filepath.Join(root, "z")))
}

// stubborn is a file system that removes nothing.
type stubborn struct{ journal.FS }

var errStubborn = errors.New("it stays")

func (s stubborn) Remove(name string) error {
	if _, err := os.Lstat(name); err != nil {
		return err
	}
	return errStubborn
}

// TestCollectFails: a store whose old files cannot be removed says so, and goes on.
func TestCollectFails(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{FS: stubborn{journal.OSFS{}}})
	tr.step(func() { tr.write("f", "w") })
	tr.step(func() { tr.write("f", "x") })
	if err := tr.store.Collect(t.Context(), time.Now(), 0); !errors.Is(err, errStubborn) {
		t.Fatal(err)
	}
	if done := tr.undo(steps.UndoOptions{}, tr.step(func() { tr.write("f", "z") })); len(done.Conflicts) > 0 || tr.copied()["f"].Text != "x" {
		t.Errorf("%+v", done)
	}
}

// TestCollect: what was forgotten takes no room, what was kept can be undone, numbers go on.
func TestCollect(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{})
	random := rand.NewChaCha8([32]byte{})
	noise := make([]byte, 1<<20)
	for range 5 {
		_, _ = random.Read(noise)
		tr.write("noise", string(noise))
		tr.step(func() { tr.write("f", string(noise[:10])) })
	}
	last := tr.step(func() { testkit.Must(t, os.Remove(filepath.Join(tr.root, "noise"))) })
	before := testkit.Value(tr.store.Status(t.Context()))(t)
	testkit.Must(t, tr.store.Collect(t.Context(), last.Ended, 0))
	after := testkit.Value(tr.store.Status(t.Context()))(t)
	if after.Bytes > before.Bytes/3 {
		t.Errorf("%d bytes, then %d", before.Bytes, after.Bytes)
	}
	tr.again()
	if _, err := tr.store.Step(t.Context(), 1); !errors.Is(err, steps.ErrNoStep) {
		t.Errorf("a step that was forgotten: %v", err)
	}
	if done := tr.undo(steps.UndoOptions{}, last); len(done.Conflicts) > 0 || done.Step.Seq != last.Seq+1 {
		t.Errorf("%+v", done)
	}
	if got := testkit.ReadFile(t, filepath.Join(tr.root, "noise")); got != string(noise) {
		t.Error("the file has another content")
	}
	testkit.Must(t, tr.store.Collect(t.Context(), time.Time{}, 1))
	if list := testkit.Value(tr.store.Steps(t.Context(), 0, 100))(t); len(list) != 1 {
		t.Errorf("%d steps are left", len(list))
	}
}

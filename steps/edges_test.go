package steps_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/steps"
)

// TestYoung: a change that leaves size and times as they are, since the clock stands still between two of its ticks, is found. Linux from
// 6.13 on gives each change that was seen a time of its own, and there the test passes whatever the rule for young files is.
func TestYoung(t *testing.T) {
	t.Parallel()
	// A store in memory, which takes no longer than a tick.
	tr := &tree{T: t, dir: "/s", root: t.TempDir(), options: steps.Options{FS: faultfs.NewDisk()}}
	tr.open()
	t.Cleanup(func() { testkit.Must(t, tr.store.Close()) })
	tr.write("f", "a")
	tr.cut(steps.Label{Kind: steps.Call})
	file := testkit.Value(os.OpenFile(filepath.Join(tr.root, "f"), os.O_WRONLY, 0))(t)
	defer file.Close()
	for i := range 300 {
		testkit.Value(file.WriteAt([]byte{byte('b' + i%2)}, 0))(t)
		if step := tr.cut(steps.Label{Kind: steps.Call}); step == nil {
			t.Fatalf("change %d was not found", i)
		}
	}
}

// TestLinked: what is written by one name of a file has changed by its other names, in directories that had no event.
func TestLinked(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{})
	tr.write("one/f", "x")
	tr.write("two/g", "x")
	testkit.Must(t, os.Link(filepath.Join(tr.root, "one/f"), filepath.Join(tr.root, "two/f")))
	tr.cut(steps.Label{Kind: steps.Outside})
	step := tr.step(func() { tr.write("one/f", "changed") })
	if len(step.Changes) != 2 || step.Changes[1].Path != "two/f" {
		t.Errorf("changes: %+v", step.Changes)
	}
}

// TestNotClosed: what was recorded before a crash is not found again as the change of somebody else.
func TestNotClosed(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	tr := &tree{T: t, dir: "/s", root: t.TempDir(), options: steps.Options{FS: disk}}
	tr.write("f", "1")
	tr.write("d/g", "1")
	tr.open()
	tr.step(func() {
		tr.write("f", "2")
		testkit.Must(t, os.RemoveAll(filepath.Join(tr.root, "d")))
		tr.write("e/h", "2")
	})
	tr.options.FS = disk.Crash(rand.New(rand.NewPCG(1, 1)), faultfs.LoseAll)
	testkit.Must(t, tr.store.Close())
	if step := tr.open(); step != nil {
		t.Errorf("found again: %+v", step.Changes)
	}
	testkit.Must(t, tr.store.Close())
}

// TestTornFill: contents of which a power cut left only parts are stored again.
func TestTornFill(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	random := rand.New(rand.NewPCG(1, 12))
	tr := &tree{T: t, dir: "/s", root: t.TempDir(), options: steps.Options{FS: disk}}
	noise := make([]byte, 700<<10)
	for i := range 6 {
		for at := range noise {
			noise[at] = byte(random.Uint32())
		}
		tr.write(fmt.Sprint("f", i), string(noise))
	}
	var after []*faultfs.Disk
	disk.Hook = func(op faultfs.Op) {
		if strings.Contains(op.Path, "content") && op.Kind != faultfs.Create {
			for range 6 {
				after = append(after, disk.Crash(random, faultfs.Sectors))
			}
		}
	}
	tr.open()
	disk.Hook = nil
	testkit.Must(t, tr.store.Close())
	if len(after) < 18 {
		t.Fatalf("%d cuts", len(after))
	}
	before := tr.copied()
	for _, disk := range after {
		tr.options.FS = disk
		tr.open()
		step := tr.step(func() {
			for name := range before {
				testkit.Must(t, os.Remove(filepath.Join(tr.root, name)))
			}
		})
		if done := tr.undo(steps.UndoOptions{}, step); len(done.Conflicts) > 0 {
			t.Fatalf("%v", done.Conflicts)
		}
		tr.same("after a cut during the fill", before)
		testkit.Must(t, tr.store.Close())
	}
}

// meddling is a file system that does something when a content is read.
type meddling struct {
	journal.FS
	do *func()
}

func (m meddling) Create(name string) (journal.File, error) {
	file, err := m.FS.Create(name)
	if strings.HasPrefix(filepath.Base(name), "content") {
		return meddlingFile{file, m.do}, err
	}
	return file, err
}

type meddlingFile struct {
	journal.File
	do *func()
}

func (m meddlingFile) ReadAt(b []byte, at int64) (int, error) {
	if do := *m.do; do != nil {
		*m.do = nil
		do()
	}
	return m.File.ReadAt(b, at)
}

// TestRacedUndo: what a person writes during an undo stays.
func TestRacedUndo(t *testing.T) {
	t.Parallel()
	var do func()
	tr := newTree(t, steps.Options{FS: meddling{journal.OSFS{}, &do}})
	tr.write("f", "\x00 before")
	step := tr.step(func() { tr.write("f", "\x00 agent") })
	tr.again()
	do = func() { tr.write("f", "\x00 person") }
	done := tr.undo(steps.UndoOptions{}, step)
	if len(done.Conflicts) != 1 || tr.copied()["f"].Text != "\x00 person" || len(tr.copied()) != 1 {
		t.Errorf("%+v, the tree has %v", done, tr.copied())
	}
}

// TestGrown: a log that has grown before its last record was written, as after a power cut, ends with the record before.
func TestGrown(t *testing.T) {
	t.Parallel()
	tr := &tree{T: t, dir: filepath.Join(t.TempDir(), "store"), root: t.TempDir()}
	tr.open()
	step := tr.step(func() { tr.write("f", "w") })
	testkit.Must(t, tr.store.Close())
	logs := testkit.Value(filepath.Glob(filepath.Join(tr.dir, "log*")))(t)
	if len(logs) != 1 {
		t.Fatalf("logs: %q", logs)
	}
	info := testkit.Value(os.Stat(logs[0]))(t)
	testkit.Must(t, os.Truncate(logs[0], info.Size()+100))
	tr.open()
	if got, err := tr.store.Step(t.Context(), step.Seq); err != nil || got.Digest != step.Digest {
		t.Errorf("%+v, %v", got, err)
	}
	if next := tr.step(func() { tr.write("f", "x") }); next == nil || next.Seq <= step.Seq {
		t.Errorf("the next step: %+v", next)
	}
	testkit.Must(t, tr.store.Close())
}

// TestUnfinished: the contents that an undo has left which was cut off are removed when the tree is read again, and nothing else.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	tr := &tree{T: t, dir: "/s", root: t.TempDir(), options: steps.Options{FS: disk}}
	tr.open()
	tr.write("d/f", "w")
	tr.write("d/.pwos-undo-mine", "a file of the user")
	step := tr.step(func() { tr.write("d/f", "x"); tr.write("g", "y") })
	var after *faultfs.Disk
	disk.Hook = func(op faultfs.Op) {
		if after == nil && op.Kind == faultfs.Remove && strings.HasSuffix(op.Path, "undoing") {
			after = disk.Crash(rand.New(rand.NewPCG(1, 1)), faultfs.KeepAll)
		}
	}
	tr.undo(steps.UndoOptions{}, step)
	disk.Hook = nil
	testkit.Must(t, tr.store.Close())
	if after == nil {
		t.Fatal("an undo has made no list of what it writes")
	}
	names := regexp.MustCompile(`(d/)?\.pwos-undo-[A-Z2-7]{26}`).FindAllString(string(after.Image()["/s/undoing"]), -1)
	if len(names) != 1 {
		t.Fatalf("it lists %q", names)
	}
	tr.write(names[0], "half")
	tr.options.FS = after
	tr.open()
	if _, there := tr.copied()[names[0]]; there {
		t.Errorf("%s is left", names[0])
	}
	if got := tr.copied()["d/.pwos-undo-mine"].Text; got != "a file of the user" {
		t.Errorf("the file of the user is %q", got)
	}
	testkit.Must(t, tr.store.Close())
}

// TestLinkedNames: an undo of one name of a file leaves another that it does not name, and what a name did before it went is in the step.
func TestLinkedNames(t *testing.T) {
	t.Parallel()
	tr := newTree(t, steps.Options{})
	tr.write("a", "1")
	step := tr.step(func() { testkit.Must(t, os.Chmod(filepath.Join(tr.root, "a"), 0o700)) })
	testkit.Must(t, errors.Join(os.Mkdir(filepath.Join(tr.root, "d"), 0o755), os.Link(filepath.Join(tr.root, "a"), filepath.Join(tr.root, "d/b"))))
	tr.undo(steps.UndoOptions{}, step)
	if got := tr.copied(); got["a"].Mode != 0o644 || got["d/b"].Mode != 0o700 {
		t.Errorf("after the undo: %v", got)
	}

	testkit.Must(t, errors.Join(os.Remove(filepath.Join(tr.root, "a")), os.Link(filepath.Join(tr.root, "d/b"), filepath.Join(tr.root, "a"))))
	step = tr.step(func() { tr.write("a", "2"); testkit.Must(t, os.Remove(filepath.Join(tr.root, "a"))) })
	if len(step.Changes) != 2 {
		t.Errorf("the step has %+v", step.Changes)
	}
	step = tr.step(func() {})
	if step != nil {
		t.Errorf("and then: %+v", step.Changes)
	}

	testkit.Must(t, os.Link(filepath.Join(tr.root, "d/b"), filepath.Join(tr.root, "c")))
	step = tr.step(func() { testkit.Must(t, os.Chmod(filepath.Join(tr.root, "c"), 0o744)) })
	if done := tr.undo(steps.UndoOptions{}, step); len(done.Conflicts) > 0 {
		t.Errorf("the undo of a change of both: %v", done.Conflicts)
	}
	if got := tr.copied(); got["c"].Mode != 0o700 || got["d/b"].Mode != 0o700 {
		t.Errorf("after the undo of both: %v", got)
	}
}

// TestFailedFill: whichever operation on the store fails once while a tree is read, nothing of it is lost when it is read again.
func TestFailedFill(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 13))
	tr := &tree{T: t, dir: "/s", root: t.TempDir()}
	noise := make([]byte, 700<<10)
	for i := range 6 {
		for at := range noise {
			noise[at] = byte(random.Uint32())
		}
		tr.write(fmt.Sprint("f", i), string(noise))
	}
	before := tr.copied()
	var failed []string
	for n := 1; ; n++ {
		fsys := faultfs.NewFailing(faultfs.NewDisk(), faultfs.Fault{})
		tr.options.FS = fsys
		store := testkit.Value(steps.Open(tr.dir, tr.root, tr.options))(t)
		fsys.Arm(faultfs.Fault{N: n, Err: unix.EIO, Short: true})
		_, err := store.Fill(t.Context(), steps.Label{Kind: steps.Outside})
		hit := fsys.Hit()
		fsys.Arm(faultfs.Fault{})
		if hit == "" {
			testkit.Must(t, errors.Join(err, store.Close()))
			break
		}
		failed = append(failed, hit)
		if !errors.Is(err, unix.EIO) {
			t.Fatalf("after a failed %s, %v", hit, err)
		}
		testkit.Value(store.Fill(t.Context(), steps.Label{Kind: steps.Outside}))(t)
		testkit.Must(t, store.Close())
		tr.open()
		step := tr.step(func() {
			for name := range before {
				testkit.Must(t, os.Remove(filepath.Join(tr.root, name)))
			}
		})
		if done := tr.undo(steps.UndoOptions{}, step); len(done.Conflicts) > 0 {
			t.Fatalf("after a failed %s: %v", hit, done.Conflicts)
		}
		tr.same("after a failed "+hit, before)
		testkit.Must(t, tr.store.Close())
	}
	if len(failed) < 6 {
		t.Errorf("only %v failed", failed)
	}
}

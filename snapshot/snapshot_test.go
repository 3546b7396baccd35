package snapshot_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/snapshot"
)

// TestRoundTrip changes random trees. An undo restores the previous state, an undo of the undo restores the agent's, and no
// changes are left to do.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rounds := uint64(60)
	if os.Getenv("PWOS_LONG") != "" {
		rounds = 10_000
	}
	p := newPlace(t)
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 1))
		testkit.Must(t, os.RemoveAll(p.dir))
		testkit.Must(t, os.Mkdir(p.dir, 0o755))
		scribble(t, r, p.dir, 40)
		before := look(t, p.dir)
		made := p.take(snapshot.What{})
		scribble(t, r, p.dir, 40)
		after := look(t, p.dir)
		kept := p.restore(made.ID)
		equal(t, "undone", look(t, p.dir), before)
		again := p.restore(kept)
		equal(t, "undo undone", look(t, p.dir), after)
		p.restore(made.ID)
		equal(t, "undone again", look(t, p.dir), before)
		rest := p.compare(made.ID, later())
		if !rest.Nothing() {
			t.Errorf("seed %d: got %v to do, want nothing", seed, rest.Plan.Changes)
		}
		testkit.Must(t, rest.Close())
		for _, id := range []string{made.ID, kept, again} {
			if err := p.store.Remove(id); err != nil && !errors.Is(err, fault.SnapshotNone) {
				t.Fatal(err)
			}
		}
	}
}

// cut is a context that ends after a number of checks.
type cut struct {
	context.Context
	left *atomic.Int64
}

func (c cut) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestCutAnywhere stops a restore at each entry, leaves a file that was about to be renamed, and restores again. The result
// is the previous state, and the copy of what was replaced has the agent's.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, name := range []string{"a", "d/e/f", "d/g", "h", "i/j", "k"} {
		p.write(name, "before "+name)
	}
	before := look(t, p.dir)
	made := p.take(snapshot.What{})
	for at := int64(0); ; at++ {
		testkit.Must(t, os.RemoveAll(filepath.Join(p.dir, "d")))
		p.write("a", "after")
		p.write("d", "a file where a directory was")
		p.write("n/o", "new")
		testkit.Must(t, os.RemoveAll(filepath.Join(p.dir, "h")))
		p.write("h/x", "a directory where a file was")
		after := look(t, p.dir)
		end := time.Now() // of the agent
		r := p.compare(made.ID, end)
		kept, err := r.Keep(context.Background(), 1, snapshot.DefaultLimit)
		testkit.Must(t, err)
		left := new(atomic.Int64)
		left.Store(at)
		err = r.Apply(cut{context.Background(), left}, kept)
		testkit.Must(t, r.Close())
		if err == nil {
			break
		}
		p.write(".pwos-undo-left", "half")
		r = p.compare(made.ID, end)
		if len(r.Plan.Since) > 0 {
			t.Fatalf("cut at %d: got %v as changed since the end", at, r.Plan.Since)
		}
		again, err := r.Keep(context.Background(), 1, snapshot.DefaultLimit)
		testkit.Must(t, err)
		if again != kept {
			t.Fatalf("cut at %d: the half-restored tree was copied again", at)
		}
		testkit.Must(t, r.Apply(context.Background(), again))
		testkit.Must(t, r.Close())
		equal(t, "completed", look(t, p.dir), before)
		p.restore(kept)
		equal(t, "undo undone", look(t, p.dir), after)
		testkit.Must(t, p.store.Remove(kept))
	}
	equal(t, "restored", look(t, p.dir), before)
}

// TestChangedSince distinguishes changes of the agent from later ones of others, also after an undo and its undo.
func TestChangedSince(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("agents", "1")
	p.write("mine", "1")
	p.write("d/kept", "1")
	made := p.take(snapshot.What{})
	p.write("agents", "2")
	p.write("d/made", "by the agent")
	end := passed(p)
	p.write("mine", "2")
	p.write("d/mine", "2")
	p.write("n/mine", "2")
	r := p.compare(made.ID, end)
	if want := []string{"d/mine", "mine", "n/mine"}; !slices.Equal(r.Plan.Since, want) {
		t.Errorf("since: got %v, want %v", r.Plan.Since, want)
	}
	kept, err := r.Keep(context.Background(), 1, snapshot.DefaultLimit)
	testkit.Must(t, err)
	testkit.Must(t, r.Apply(context.Background(), kept))
	testkit.Must(t, r.Close())
	for _, id := range []string{kept, made.ID, kept} {
		r := p.compare(id, end)
		if len(r.Plan.Since) > 0 {
			t.Errorf("after an undo: got %v", r.Plan.Since)
		}
		testkit.Must(t, r.Apply(context.Background(), ""))
		testkit.Must(t, r.Close())
	}
	if text := testkit.ReadFile(t, filepath.Join(p.dir, "d/mine")); text != "2" {
		t.Errorf("d/mine: got %q", text)
	}
}

// passed returns a time after all changes so far and before later ones, by the clock of the file system.
func passed(p *place) time.Time {
	at := filepath.Join(p.state, "clock")
	testkit.Must(p.T, os.WriteFile(at, nil, 0o600))
	info, err := os.Stat(at)
	testkit.Must(p.T, err)
	testkit.Eventually(p.T, "the file system's clock advances", func() bool {
		testkit.Must(p.T, os.WriteFile(at, nil, 0o600))
		now, err := os.Stat(at)
		return err == nil && now.ModTime().After(info.ModTime())
	})
	return info.ModTime()
}

// TestNothingEscapes copies and restores while another goroutine replaces directories and files with links that lead out.
func TestNothingEscapes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	outside := filepath.Join(filepath.Dir(p.dir), "outside")
	testkit.Must(t, os.Mkdir(outside, 0o755))
	testkit.Must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("outside"), 0o640))
	p.write("d/f", "inside")
	p.write("f", "inside")
	before := look(t, outside)
	made := p.take(snapshot.What{})

	var stop atomic.Bool
	var swapper sync.WaitGroup
	swapper.Go(func() {
		next := filepath.Join(p.dir, "next")
		for !stop.Load() {
			_ = os.Rename(filepath.Join(p.dir, "d"), next)
			_ = os.Symlink("../outside", filepath.Join(p.dir, "d"))
			_ = os.Remove(filepath.Join(p.dir, "f"))
			_ = os.Symlink("../outside/f", filepath.Join(p.dir, "f"))
			_ = os.Remove(filepath.Join(p.dir, "d"))
			_ = os.Rename(next, filepath.Join(p.dir, "d"))
			_ = os.Remove(filepath.Join(p.dir, "f"))
			_ = os.WriteFile(filepath.Join(p.dir, "f"), []byte("inside"), 0o600)
		}
	})
	for range 300 {
		if copied, err := p.store.Take(context.Background(), p.dir, snapshot.What{Limit: 1 << 20}); err == nil {
			if tree := look(t, filepath.Join(p.state, "snapshots", copied.ID, "tree")); strings.Contains(tree, `"outside"`) {
				t.Errorf("the copy has files from outside:\n%s", tree)
			}
			testkit.Must(t, p.store.Remove(copied.ID))
		}
		r, err := p.store.Restore(context.Background(), made.ID, later())
		if err == nil {
			_ = r.Apply(context.Background(), "") // may fail: the tree moves
			testkit.Must(t, r.Close())
		}
	}
	stop.Store(true)
	swapper.Wait()
	equal(t, "outside", look(t, outside), before)
	_ = os.RemoveAll(p.dir)
	p.restore(made.ID)
	if text := testkit.ReadFile(t, filepath.Join(p.dir, "d/f")); text != "inside" {
		t.Errorf("d/f: got %q", text)
	}
}

// TestNotCopied: sockets, pipes and skipped entries are neither copied nor changed by a restore.
func TestNotCopied(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a", "1")
	p.write("node_modules/m", "1")
	p.write("build/x.o", "1")
	testkit.Must(t, unix.Mkfifo(filepath.Join(p.dir, "pipe"), 0o600))
	made := p.take(snapshot.What{Skip: []string{"node_modules", "build/*.o"}})
	if made.Files != 1 || !slices.Equal(made.LeftOut, []string{"pipe: no file"}) {
		t.Errorf("got %d files and left out %v, want 1 and the pipe", made.Files, made.LeftOut)
	}
	p.write("node_modules/m", "2")
	p.write("build/x.o", "2")
	testkit.Must(t, unix.Mkfifo(filepath.Join(p.dir, "another"), 0o600))
	r := p.compare(made.ID, later())
	if !r.Nothing() {
		t.Errorf("got %v to do, want nothing", r.Plan.Changes)
	}
	testkit.Must(t, r.Close())
	for _, bad := range []string{"[", "", "/"} {
		if _, err := p.store.Take(context.Background(), p.dir, snapshot.What{Limit: 1, Skip: []string{bad}}); !errors.Is(err, fault.UsageInvalid) {
			t.Errorf("skip %q: got %v", bad, err)
		}
	}
}

// TestTooBig: a tree that exceeds the limit is refused before anything is copied; holes do not count, and stay holes.
func TestTooBig(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("big", strings.Repeat("x", 100_000))
	_, err := p.store.Take(context.Background(), p.dir, snapshot.What{Limit: 50_000})
	if err != nil && !errors.Is(err, fault.SnapshotTooBig) {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(p.state, "snapshots")); err != nil || len(left) > 0 && !clones(p) {
		t.Errorf("files are left: %v, %v", left, err)
	}
	testkit.Must(t, os.Remove(filepath.Join(p.dir, "big")))
	testkit.Must(t, os.WriteFile(filepath.Join(p.dir, "sparse"), []byte("start"), 0o600))
	testkit.Must(t, os.Truncate(filepath.Join(p.dir, "sparse"), 1<<30))
	made := p.take(snapshot.What{Limit: 1 << 20})
	if made.Bytes > 1<<20 {
		t.Errorf("copied %d bytes of a file with a hole", made.Bytes)
	}
	info, err := os.Stat(filepath.Join(p.state, "snapshots", made.ID, "tree", "sparse"))
	if err != nil || info.Size() != 1<<30 {
		t.Errorf("the copy: got %v, %v", info, err)
	}
}

// clones reports whether the file system has reflinks, so that there is no limit.
func clones(p *place) bool {
	made, err := p.store.Take(context.Background(), p.dir, snapshot.What{Limit: 1})
	return err == nil && p.store.Remove(made.ID) == nil
}

// TestDirectory restores a directory that was removed or replaced.
func TestDirectory(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("d/f", "1")
	testkit.Must(t, os.Chmod(p.dir, 0o750))
	before := look(t, p.dir)
	made := p.take(snapshot.What{})
	testkit.Must(t, os.RemoveAll(p.dir))
	if kept := p.restore(made.ID); kept != "" {
		t.Errorf("the directory was missing, and copy %s was made of it", kept)
	}
	equal(t, "made again", look(t, p.dir), before)

	testkit.Must(t, os.Rename(p.dir, p.dir+"2"))
	testkit.Must(t, os.Symlink(p.dir+"2", p.dir))
	if _, err := p.store.Restore(context.Background(), made.ID, later()); !errors.Is(err, fault.SnapshotFailed) || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("through a link: got %v", err)
	}
	testkit.Must(t, os.Remove(p.dir))
	testkit.Must(t, os.WriteFile(p.dir, nil, 0o600))
	if _, err := p.store.Restore(context.Background(), made.ID, later()); !errors.Is(err, fault.SnapshotFailed) {
		t.Errorf("a file: got %v", err)
	}
}

// TestPrune removes copies that are old, too many, or incomplete, and none in use.
func TestPrune(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("f", "1")
	var made []string
	const most, month = 3, 30 * 24 * time.Hour
	for range most + 3 {
		made = append(made, p.take(snapshot.What{}).ID)
	}
	testkit.Must(t, os.Mkdir(filepath.Join(p.state, "snapshots", "making-s12345678"), 0o700))
	list, err := p.store.List()
	testkit.Must(t, err)
	used := p.compare(list[1].ID, later())
	removed, err := p.store.Prune(time.Now(), most, month, map[string]bool{list[0].ID: true})
	testkit.Must(t, err)
	if len(removed) != 1 || removed[0].ID != list[2].ID {
		t.Errorf("got %v, want %s", removed, list[2].ID)
	}
	if _, err := os.Lstat(filepath.Join(p.state, "snapshots", "making-s12345678")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an incomplete copy was not removed: %v", err)
	}
	if _, err := p.store.Restore(context.Background(), list[1].ID, later()); !errors.Is(err, fault.SnapshotBusy) {
		t.Errorf("twice at once: got %v", err)
	}
	if err := p.store.Remove(list[1].ID); !errors.Is(err, fault.SnapshotBusy) {
		t.Errorf("remove one that is used: got %v", err)
	}
	testkit.Must(t, used.Close())
	removed, err = p.store.Prune(time.Now().Add(month+time.Hour), most, month, nil)
	if err != nil || len(removed) != len(made)-1 {
		t.Errorf("old ones: got %d, %v", len(removed), err)
	}
	for _, id := range []string{list[0].ID, "../state", "", "s1"} {
		if _, err := p.store.Get(id); !errors.Is(err, fault.SnapshotNone) {
			t.Errorf("%q: got %v", id, err)
		}
		if err := p.store.Remove(id); !errors.Is(err, fault.SnapshotNone) {
			t.Errorf("remove %q: got %v", id, err)
		}
	}
}

// TestStore refuses a directory of copies that other users may access.
func TestStore(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	at := filepath.Join(p.state, "snapshots")
	testkit.Must(t, os.Chmod(at, 0o755))
	if _, err := snapshot.Open(p.state); !errors.Is(err, fault.PlaceUnsafe) {
		t.Errorf("open to others: got %v", err)
	}
	testkit.Must(t, os.Remove(at))
	testkit.Must(t, os.Symlink(p.dir, at))
	if _, err := snapshot.Open(p.state); !errors.Is(err, fault.PlaceUnsafe) {
		t.Errorf("a link: got %v", err)
	}
}

// TestClosed copies and restores entries that their owner may not read, which an agent can leave behind.
func TestClosed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("d/f", "1")
	p.write("g", "1")
	before := look(t, p.dir)
	made := p.take(snapshot.What{})
	p.write("d/f", "2")
	p.write("n/f", "2")
	for _, name := range []string{"d/f", "d", "n", "g", "."} {
		testkit.Must(t, os.Chmod(filepath.Join(p.dir, name), 0))
	}
	kept := p.restore(made.ID)
	equal(t, "undone", look(t, p.dir), before)
	p.restore(kept)
	info, err := os.Lstat(p.dir)
	if err != nil || info.Mode().Perm() != 0 {
		t.Errorf("after the undo of the undo: got %v, %v, want mode 0", info, err)
	}
	testkit.Must(t, os.Chmod(p.dir, 0o700))
	for _, name := range []string{"d", "n", "g"} {
		if info, err := os.Lstat(filepath.Join(p.dir, name)); err != nil || info.Mode().Perm() != 0 {
			t.Errorf("after the undo of the undo: got %v, %v, want mode 0", info, err)
		}
	}
	p.restore(made.ID)
	equal(t, "undone again", look(t, p.dir), before)
	all, err := p.store.List()
	testkit.Must(t, err)
	for _, one := range all { // closed directories too
		testkit.Must(t, p.store.Remove(one.ID))
	}
}

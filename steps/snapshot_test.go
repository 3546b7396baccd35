package steps_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/steps"
)

// restored returns a disk with what a snapshot has.
func restored(t *testing.T, c *steps.Snapshot) *faultfs.Disk {
	t.Helper()
	disk := faultfs.NewDisk()
	testkit.Must(t, disk.Mkdir("/s"))
	for _, file := range c.Files {
		text := testkit.Value(io.ReadAll(io.NewSectionReader(file, 0, file.Size)))(t)
		if int64(len(text)) != file.Size {
			t.Fatalf("%s has %d bytes of %d", file.Name, len(text), file.Size)
		}
		to := testkit.Value(disk.Create(filepath.Join("/s", file.Name)))(t)
		_, err := to.WriteAt(text, 0)
		testkit.Must(t, errors.Join(err, to.Close()))
	}
	return disk
}

// TestSnapshots copies a store at each operation of sessions, and copies the files some operations later: whatever was recorded when the
// snapshot was made is in the copy, with all contents, and goes on.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	made, rounds := 0, testkit.Rounds(4, 2, 100)
	for seed := range rounds {
		random := rand.New(rand.NewPCG(uint64(seed), 12))
		disk := faultfs.NewDisk()
		s := &session{tree: &tree{T: t, dir: "/s", root: t.TempDir(), options: steps.Options{FS: disk}}, rand: random}
		var recorded, then []*steps.Step
		var taken *steps.Snapshot
		restore := func() {
			if taken != nil {
				made++
				recovers(t, restored(t, taken), s.root, true, then)
				testkit.Must(t, taken.Close())
				taken = nil
			}
		}
		disk.Hook = func(faultfs.Op) {
			if random.IntN(4) > 0 {
				return
			}
			hook := disk.Hook
			disk.Hook = nil
			restore()
			c, err := steps.Capture(disk, "/s")
			if err != nil {
				t.Fatal(err)
			}
			taken, then = c, recorded
			disk.Hook = hook
		}
		s.acts(30)
		s.open()
		for range 8 {
			s.acts(12)
			if step := s.cut(steps.Label{Kind: steps.Call, Agent: "a"}); step != nil {
				recorded = append(recorded, step)
			}
			if random.IntN(5) == 0 {
				forgotten := recorded
				recorded = nil // until it is known which are
				testkit.Must(t, s.store.Collect(t.Context(), time.Now(), 0))
				if len(forgotten) > 0 {
					recorded = forgotten[len(forgotten)-1:]
				}
			}
		}
		testkit.Must(t, s.store.Close())
		disk.Hook = nil
		restore()
	}
	if made < 5*rounds {
		t.Errorf("only %d copies were made", made)
	}
}

// collecting is a file system on which a new generation takes the place of the one that a snapshot is about to open.
type collecting struct {
	journal.FS
	collect func()
}

func (f *collecting) Open(name string) (journal.File, error) {
	if do := f.collect; do != nil && bytes.HasPrefix([]byte(filepath.Base(name)), []byte("log-")) {
		f.collect = nil
		do()
	}
	return f.FS.Open(name)
}

// TestSnapshotOfTheNextGeneration: a snapshot begins again if its files go. Without a first reading there is none.
func TestSnapshotOfTheNextGeneration(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	tr := &tree{T: t, dir: "/s", root: t.TempDir(), options: steps.Options{FS: disk}}
	tr.store = testkit.Value(steps.Open(tr.dir, tr.root, tr.options))(t)
	if c, err := steps.Capture(disk, "/s"); c != nil || err != nil {
		t.Errorf("before the first reading: %+v, %v", c, err)
	}
	testkit.Value(tr.store.Fill(t.Context(), steps.Label{}))(t)
	tr.step(func() { tr.write("a", "1") })
	last := tr.step(func() { tr.write("a", "2") })
	c := testkit.Value(steps.Capture(&collecting{FS: disk, collect: func() { testkit.Must(t, tr.store.Collect(t.Context(), time.Now(), 0)) }}, "/s"))(t)
	testkit.Must(t, tr.store.Close())
	recovers(t, restored(t, c), tr.root, true, []*steps.Step{last})
	testkit.Must(t, c.Close())
	testkit.Must(t, disk.Remove("/s/content-2"))
	if _, err := steps.Capture(disk, "/s"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without its contents: %v", err)
	}
}

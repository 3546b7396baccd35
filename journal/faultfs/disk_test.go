package faultfs_test

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

const path = "/d/f"

func rng() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func write(t *testing.T, f journal.File, off int64, s string) {
	t.Helper()
	_, err := f.WriteAt([]byte(s), off)
	testkit.Must(t, err)
}

// disk returns a disk with one file with the text "synced", which is durable with its name and directory.
func disk(t *testing.T) (*faultfs.Disk, journal.File) {
	t.Helper()
	d := faultfs.NewDisk()
	testkit.Must(t, d.Mkdir("/d"))
	testkit.Must(t, d.SyncDir("/"))
	f, err := d.Create(path)
	testkit.Must(t, err)
	write(t, f, 0, "synced")
	testkit.Must(t, f.Sync())
	testkit.Must(t, d.SyncDir("/d"))
	return d, f
}

// found returns the content of a file after a power cut, or "gone".
func found(d *faultfs.Disk, r *rand.Rand, how faultfs.Outcome) string {
	data, ok := d.Crash(r, how).Image()[path]
	if !ok {
		return "gone"
	}
	return string(data)
}

func TestCrashOutcomes(t *testing.T) {
	t.Parallel()
	d, f := disk(t)
	r := rng()
	testkit.Must(t, f.Truncate(4))
	write(t, f, 4, "-one-")
	write(t, f, 9, "two")
	for range 200 {
		for how, want := range map[faultfs.Outcome]string{
			faultfs.LoseAll: "synced",
			faultfs.KeepAll: "sync-one-two",
			// No cut, or the cut and some of the writes.
			faultfs.Prefix: "synced|sync|sync-|sync-o|sync-on|sync-one|sync-one-|sync-one-t|sync-one-tw|sync-one-two",
			// Any of the three, none of which crosses a sector.
			faultfs.Sectors: "synced|sync|sync-one-|sync-one-two|synced\x00\x00\x00two|sync\x00\x00\x00\x00\x00two|" +
				"synced\x00\x00\x00\x00\x00\x00|sync\x00\x00\x00\x00\x00\x00\x00\x00|sync-one-\x00\x00\x00",
		} {
			if got := found(d, r, how); !strings.Contains("|"+want+"|", "|"+got+"|") {
				t.Fatalf("outcome %d: got %q, want one of %q", how, got, want)
			}
		}
	}
	testkit.Must(t, f.Sync())
	for how := range faultfs.Outcome(faultfs.Outcomes) {
		if got := found(d, r, how); got != "sync-one-two" {
			t.Errorf("outcome %d after sync: got %q", how, got)
		}
	}
}

func TestSectorsAreTornApart(t *testing.T) {
	t.Parallel()
	d, f := disk(t)
	write(t, f, 6, strings.Repeat("x", 2000))
	seen := map[string]bool{}
	for r := rng(); len(seen) < 8; {
		got := found(d, r, faultfs.Sectors)
		for i, at := range []int{100, 600, 1100, 1600} {
			if len(got) > at && (got[at] == 0) != (got[min(len(got)-1, at+1)] == 0) {
				t.Fatalf("sector %d is torn inside", i)
			}
		}
		seen[got] = true
	}
}

func TestNamesAreLost(t *testing.T) {
	t.Parallel()
	d := faultfs.NewDisk()
	testkit.Must(t, d.Mkdir("/d"))
	f, err := d.Create(path)
	testkit.Must(t, err)
	write(t, f, 0, "x")
	testkit.Must(t, f.Sync())
	r := rng()
	want := func(what, content string) {
		t.Helper()
		if got := found(d, r, faultfs.LoseAll); got != content {
			t.Errorf("%s: got %q, want %q", what, got, content)
		}
	}
	want("no name synced", "gone")
	testkit.Must(t, d.SyncDir("/d"))
	want("directory's own name not synced", "gone")
	testkit.Must(t, d.SyncDir("/"))
	want("all names synced", "x")
}

func TestFailedSyncLosesData(t *testing.T) {
	t.Parallel()
	d, f := disk(t)
	fsys := faultfs.NewFailing(d, faultfs.Fault{})
	g, err := fsys.Create(path)
	testkit.Must(t, err)
	write(t, g, 6, "-more")
	fsys.Arm(faultfs.Fault{N: 1, Err: syscall.EIO})
	if err := g.Sync(); !errors.Is(err, syscall.EIO) || fsys.Hit() != "sync" {
		t.Errorf("got %v", err)
	}
	testkit.Must(t, g.Sync())
	buf := make([]byte, 20)
	if n, err := f.ReadAt(buf, 0); string(buf[:n]) != "synced-more" || !errors.Is(err, io.EOF) {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	if got := found(d, rng(), faultfs.LoseAll); got != "synced\x00\x00\x00\x00\x00" {
		t.Errorf("found %q, want what was written to be NULs", got)
	}
}

func TestShortWrites(t *testing.T) {
	t.Parallel()
	for _, lies := range []bool{false, true} {
		d, _ := disk(t)
		fsys := faultfs.NewFailing(d, faultfs.Fault{N: 2, Err: syscall.ENOSPC, Short: true, Lies: lies})
		f, err := fsys.Create(path)
		testkit.Must(t, err)
		n, err := f.WriteAt([]byte("1234"), 6)
		if n != 2 || errors.Is(err, syscall.ENOSPC) == lies || string(d.Image()[path]) != "synced12" {
			t.Errorf("Lies %v: got %d, %v, file %q", lies, n, err, d.Image()[path])
		}
	}
}

// A disk that is full of other files has exactly the reserved room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	d, f := disk(t)
	testkit.Must(t, f.Allocate(6, 4))
	d.Leave(2)
	if err := f.Allocate(6, 7); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("allocate 3 of 2 bytes: got %v", err)
	}
	write(t, f, 6, "1234")
	if n, err := f.WriteAt([]byte("567"), 10); n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write 3 of 2 bytes: got %d, %v", n, err)
	}
	write(t, f, 0, "SYNCED")
	testkit.Must(t, f.Truncate(11)) // leaves one byte
	write(t, f, 11, "7")
	if n, err := f.WriteAt([]byte("8"), 12); n != 0 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write to a full disk: got %d, %v", n, err)
	}
	if got := found(d, rng(), faultfs.KeepAll); got != "SYNCED123457" || d.Kept() != 12 {
		t.Errorf("found %q, %d bytes kept", got, d.Kept())
	}
	d.Free()
	write(t, f, 12, "8")
}

// A renamed file has only its new name after the directory is synced.
func TestRename(t *testing.T) {
	t.Parallel()
	d, _ := disk(t)
	testkit.Must(t, d.Rename(path, "/d/g"))
	names := func(how faultfs.Outcome, r *rand.Rand) (old, now bool) {
		image := d.Crash(r, how).Image()
		_, old = image[path]
		_, now = image["/d/g"]
		return old, now
	}
	if old, now := names(faultfs.LoseAll, rng()); !old || now {
		t.Errorf("all lost: old name %v, new %v", old, now)
	}
	if old, now := names(faultfs.KeepAll, rng()); old || !now {
		t.Errorf("nothing lost: old name %v, new %v", old, now)
	}
	testkit.Must(t, d.SyncDir("/d"))
	r := rng()
	for range 20 {
		if old, now := names(faultfs.Sectors, r); old || !now {
			t.Errorf("synced: old name %v, new %v", old, now)
		}
	}
	if err := d.Rename(path, "/d/g"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rename what is not there: got %v", err)
	}
}

func TestDiskErrors(t *testing.T) {
	t.Parallel()
	d, _ := disk(t)
	_, open := d.Open("/d/none")
	_, list := d.ReadDir("/none")
	_, create := d.Create("/none/f")
	for name, err := range map[string]error{"open": open, "readdir": list, "create": create, "mkdir": d.Mkdir("/none/d")} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want ErrNotExist", name, err)
		}
	}
	if err := d.Mkdir("/d"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("mkdir twice: got %v", err)
	}
	f, err := d.Open(path)
	testkit.Must(t, err)
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("a file that is open for reading was written")
	}
	l, err := d.Lock("/d")
	testkit.Must(t, err)
	if _, err := d.Lock("/d"); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("lock twice: got %v", err)
	}
	testkit.Must(t, l.Close())
	_, err = d.Lock("/d")
	testkit.Must(t, err)
	d.Kill()
	_, err = d.Lock("/d")
	testkit.Must(t, err)
}

package journal_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

const reserve = 10_000

// fill lets other files take the disk, and the journal all except for its reserve: entries are flushed until one is
// refused.
func fill(t *testing.T, disk *faultfs.Disk, l *journal.Log, free int64) {
	t.Helper()
	disk.Leave(free)
	for range 1000 {
		l.Append(entry(l.Written()+1, 10))
		if err := l.Flush(); err != nil {
			noRoom(t, err)
			return
		}
	}
	t.Fatal("the disk was never full")
}

func noRoom(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, journal.ErrStopped) {
		t.Fatalf("flush on a full disk: got %v", err)
	}
}

// A full disk refuses what Flush writes, and never so late that the reserve is used. All of the reserve can then be
// written, and is still there after a start. When there is room, the reserve is filled again.
func TestReserve(t *testing.T) {
	t.Parallel()
	for _, segment := range []int64{1 << 20, 2000} {
		for _, free := range []int64{0, 700, reserve - 1, 2*reserve + 500} {
			t.Run(fmt.Sprint(segment, free), func(t *testing.T) {
				t.Parallel()
				disk := faultfs.NewDisk()
				opt := journal.Options{Dir: dir, FS: disk, SegmentBytes: segment, ReserveBytes: reserve, Signer: newHostKey(1)}
				l, _ := open(t, opt)
				grow(t, l, 3)
				for range 2 {
					fill(t, disk, l, free)
					disk.Leave(0)
					for range 1000 {
						l.Append(entry(l.Written()+1, 10))
						noRoom(t, l.Flush())
					}
					before := len(segments(disk.Image()))
					for {
						l.Append(entry(l.Written()+1, 10))
						if err := l.FlushFromReserve(); err != nil {
							noRoom(t, err)
							break
						}
					}
					if got := len(segments(disk.Image())) - before; got < reserve-500 || got > 2*reserve {
						t.Fatalf("%d bytes were written from a reserve of %d", got, reserve)
					}
					_, err := l.Sync()
					testkit.Must(t, err)
					disk.Free()
					grow(t, l, 3)
				}
				want := l.Written()
				testkit.Must(t, l.Close())
				_, rec := open(t, opt)
				if rec.Head.Seq != want || rec.Cut != nil {
					t.Errorf("got %+v, want %d entries", rec, want)
				}
				if report := verify(t, disk, dir, journal.VerifyOptions{}); !report.OK() {
					t.Errorf("got %+v", report)
				}
			})
		}
	}
}

// The disk counts as full only if an entry and the reserve do not fit: the extra room that is allocated ahead may be
// smaller.
func TestReserveAlone(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, ReserveBytes: reserve})
	const free = reserve - 1
	disk.Leave(free)
	before, room := len(segments(disk.Image())), disk.Kept()+free
	fill(t, disk, l, free)
	if left := room - int64(len(segments(disk.Image()))-before); left < reserve || left > reserve+500 {
		t.Errorf("refused with room for %d bytes, want no more than the reserve of %d", left, reserve)
	}
}

// A kernel that is killed on a full disk starts on it, and finds its reserve; so does one that ended cleanly, which signs
// its head.
func TestReserveAfterStart(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	var trouble []error
	opt := journal.Options{
		Dir: dir, FS: disk, ReserveBytes: reserve, Signer: newHostKey(1),
		Trouble: func(err error) { trouble = append(trouble, err) },
	}
	l, _ := open(t, opt)
	grow(t, l, 3)
	testkit.Must(t, l.Close())
	l, _ = open(t, opt)
	fill(t, disk, l, 0)
	for i := range 4 {
		written := l.Written()
		disk.Kill()
		l, _ = open(t, opt)
		if i == 0 && len(trouble) > 0 {
			t.Errorf("trouble: %v, want a complete reserve", trouble)
		}
		if l.Written() != written {
			t.Fatalf("start found %d entries of %d", l.Written(), written)
		}
		l.Append(entry(written+1, 10))
		noRoom(t, l.Flush())
		l.Append(entry(written+1, 10))
		testkit.Must(t, l.FlushFromReserve())
		testkit.Must(t, l.Close())
		if report := verify(t, disk, dir, journal.VerifyOptions{}); !report.OK() || report.Vouched != written+1 {
			t.Errorf("got %+v, want %d entries vouched for", report, written+1)
		}
		l, _ = open(t, opt)
	}
	if len(trouble) == 0 {
		t.Error("a reserve that is not complete was not reported")
	}
}

// Without room for a reserve at its start, a journal works without one: it can write only from the reserve.
func TestStartWithoutReserve(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk})
	grow(t, l, 3)
	testkit.Must(t, l.Close())
	disk.Leave(reserve / 2)
	var trouble []error
	l, _ = open(t, journal.Options{Dir: dir, FS: disk, ReserveBytes: reserve, Trouble: func(err error) { trouble = append(trouble, err) }})
	if len(trouble) != 1 {
		t.Errorf("trouble: %v, want that there is no reserve", trouble)
	}
	l.Append(entry(4, 10))
	noRoom(t, l.Flush())
	l.Append(entry(4, 10))
	testkit.Must(t, l.FlushFromReserve())
}

// A full segment leaves nothing allocated, and a reserve that was used up on a full disk did not start another segment.
func TestReserveOfFullSegment(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	fsys := faultfs.NewFailing(disk, faultfs.Fault{})
	l, _ := open(t, journal.Options{Dir: dir, FS: fsys, SegmentBytes: 2000, ReserveBytes: reserve})
	grow(t, l, 30)
	kept := disk.Kept() - int64(len(segments(disk.Image()))) - int64(len(disk.Image()[headPath]))
	if kept < reserve || kept > 2*reserve {
		t.Errorf("%d bytes are kept beyond what is written, want one reserve, or two at most", kept)
	}
	before := len(disk.Image())
	fill(t, disk, l, 0)
	for range 10 {
		l.Append(entry(l.Written()+1, 500))
		testkit.Must(t, l.FlushFromReserve())
	}
	var found int
	for path, data := range disk.Image() {
		if strings.HasSuffix(path, ".ndjson") && len(data) > 3000 {
			found++
		}
	}
	if found != 1 || len(disk.Image()) > before+1 {
		t.Errorf("%d long segments in %d files, %d before, want the last to hold it all", found, len(disk.Image()), before)
	}
}

// On a file system that cannot allocate there is no reserve, and everything else works. Allocation is tried once.
func TestNoReserve(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{errors.ErrUnsupported, syscall.EOPNOTSUPP, syscall.EPERM} {
		disk := faultfs.NewDisk()
		fsys := &keepsNothing{FS: disk, err: cause}
		var trouble []error
		l, _ := open(t, journal.Options{
			Dir: dir, FS: fsys, ReserveBytes: reserve, Signer: newHostKey(1),
			Trouble: func(err error) { trouble = append(trouble, err) },
		})
		grow(t, l, 300)
		if fsys.asked != 1 || len(trouble) != 1 || !errors.Is(trouble[0], cause) {
			t.Errorf("%v: asked %d times; trouble: %v", cause, fsys.asked, trouble)
		}
		disk.Leave(0)
		l.Append(entry(301, 10))
		noRoom(t, l.FlushFromReserve())
		disk.Free()
		grow(t, l, 3)
		testkit.Must(t, l.Close())
	}
}

// keepsNothing is a file system that cannot allocate ahead.
type keepsNothing struct {
	journal.FS

	err   error
	asked int
}

func (k *keepsNothing) Create(name string) (journal.File, error) {
	f, err := k.FS.Create(name)
	return &keepsNothingFile{f, k}, err
}

type keepsNothingFile struct {
	journal.File

	fs *keepsNothing
}

func (f *keepsNothingFile) Allocate(int64, int64) error {
	f.fs.asked++
	return f.fs.err
}

// A reserve costs an operation occasionally, not one for each entry.
func TestReserveIsCheap(t *testing.T) {
	t.Parallel()
	fsys := faultfs.NewFailing(faultfs.NewDisk(), faultfs.Fault{})
	l, _ := open(t, journal.Options{Dir: dir, FS: fsys, ReserveBytes: 100_000})
	fsys.Arm(faultfs.Fault{})
	const entries = 1000
	size := 0
	for range entries {
		e := entry(l.Written()+1, 10)
		size += len(e.Request)
		l.Append(e)
		testkit.Must(t, l.Flush())
	}
	if n := fsys.Count(); n > entries+10 {
		t.Errorf("%d operations for %d writes", n, entries)
	}
}

// A failed write released its room when its remains were removed: the next Flush allocates it again.
func TestReserveAfterFailedWrite(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	fsys := faultfs.NewFailing(disk, faultfs.Fault{})
	l, _ := open(t, journal.Options{Dir: dir, FS: fsys, ReserveBytes: reserve})
	grow(t, l, 3)
	fsys.Arm(faultfs.Fault{N: 1, Err: syscall.EIO, Short: true})
	l.Append(entry(4, 10))
	if err := l.Flush(); !errors.Is(err, syscall.EIO) || fsys.Hit() != "write" {
		t.Fatalf("flush: got %v after %q failed", err, fsys.Hit())
	}
	grow(t, l, 1)
	disk.Leave(0)
	fill(t, disk, l, 0)
	l.Append(entry(l.Written()+1, reserve-1000))
	testkit.Must(t, l.FlushFromReserve())
}

// The end of a journal is signed on a full disk too, even if nothing was signed before.
func TestCheckpointOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, ReserveBytes: reserve, Signer: newHostKey(1)})
	grow(t, l, 3)
	disk.Leave(0)
	testkit.Must(t, l.Close())
	if report := verify(t, disk, dir, journal.VerifyOptions{}); !report.OK() || report.Vouched != 3 || report.Checkpoints != 1 {
		t.Errorf("got %+v", report)
	}
}

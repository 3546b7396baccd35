package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// faults are the ways in which one operation fails in TestEachOperationFailsOnce.
var faults = []faultfs.Fault{
	{Err: syscall.EIO},
	{Err: syscall.EMFILE},
	{Err: syscall.ENOSPC, Short: true},
	{Err: syscall.EIO, Short: true, Lies: true},
	{Err: syscall.ENOSPC, Short: true, Then: 1},
	{Err: syscall.EIO, Short: true, Then: 2},
}

// Each operation of a workload (six with PWOS_LONG=1) fails, one at a time, with and without another one right after it:
// entries whose Flush failed never come back, those that Sync covered are never lost, and a start without faults succeeds,
// with and without a power cut.
func TestEachOperationFailsOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	hits := map[string]int{}
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(testkit.Rounds(1, 1, 6)) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				for _, fault := range faults {
					// The first run, without a failure, counts the operations.
					for n, last := 0, 1; n <= last; n++ {
						fault.N = n
						w := newWorkload(seed, faultfs.NewDisk())
						w.faults, w.cutEvery = faultfs.NewFailing(nil, fault), 32
						w.run()
						if w.err != nil {
							t.Fatalf("%v at operation %d (%s): %v", fault.Err, n, w.faults.Hit(), w.err)
						}
						if n == 0 {
							last = w.faults.Count()
							continue
						}
						mu.Lock()
						hits[w.faults.Hit()]++
						mu.Unlock()
					}
				}
			})
		}
	})
	wantHits(t, hits, "mkdir readdir open create read write allocate rename sync syncdir lock size")
}

// Each operation of a start that must cut all files fails: the next start finds the same entries.
func TestEachOperationOfARecoveryFailsOnce(t *testing.T) {
	t.Parallel()
	torn := signedJournal(t)
	torn[segmentPath(37)] = append(torn[segmentPath(37)], entry(41, 10).Request...)
	torn[checkpointsPath] = append(torn[checkpointsPath], `{"seq":41`...)
	torn[headPath] = append(torn[headPath], 'x')
	r := rand.New(rand.NewPCG(1, 1))
	hits := map[string]int{}
	for _, fault := range faults {
		for n, last := 0, 1; n <= last; n++ {
			fault.N = n
			disk := faultfs.FromImage(torn)
			fsys := faultfs.NewFailing(disk, fault)
			_, _, err := journal.Open(journal.Options{Dir: dir, FS: fsys, Signer: newHostKey(1)})
			if n == 0 {
				testkit.Must(t, err)
				last = fsys.Count()
				continue
			}
			hits[fsys.Hit()]++
			disk = disk.Crash(r, faultfs.Outcome(n%faultfs.Outcomes))
			l, rec, err := journal.Open(journal.Options{Dir: dir, FS: disk, Signer: newHostKey(1)})
			if err != nil || rec.Head.Seq != 40 {
				t.Errorf("%v at operation %d (%s): got %+v, %v", fault.Err, n, fsys.Hit(), rec, err)
				continue
			}
			grow(t, l, 2)
			testkit.Must(t, l.Close())
			report := verify(t, disk.Crash(r, faultfs.LoseAll), dir, journal.VerifyOptions{})
			if !report.OK() || report.Vouched != 42 {
				t.Errorf("%v at operation %d (%s): got %+v", fault.Err, n, fsys.Hit(), report)
			}
		}
	}
	wantHits(t, hits, "readdir open create read write truncate sync syncdir lock size")
}

func wantHits(t *testing.T, hits map[string]int, kinds string) {
	t.Helper()
	for _, kind := range strings.Fields(kinds) {
		if hits[kind] == 0 {
			t.Errorf("no %s failed", kind)
		}
	}
	t.Log(hits)
}

// A full disk refuses entries, and the journal continues as if they had not been appended.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	fsys := faultfs.NewFailing(disk, faultfs.Fault{})
	l, _ := open(t, journal.Options{Dir: dir, FS: fsys})
	grow(t, l, 5)
	before := segments(disk.Image())
	for range 3 {
		fsys.Arm(faultfs.Fault{N: 1, Err: syscall.ENOSPC, Short: true})
		if seq := l.Append(entry(6, 700)); seq != 6 {
			t.Fatalf("appended entry 6 as %d", seq)
		}
		l.Append(entry(7, 10))
		err := l.Flush()
		if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, journal.ErrStopped) {
			t.Fatalf("flush on a full disk: got %v", err)
		}
		if l.Written() != 5 || segments(disk.Image()) != before {
			t.Fatal("the refused entry has left bytes on the disk")
		}
	}
	grow(t, l, 5)
	testkit.Must(t, l.Close())
	_, rec := open(t, journal.Options{Dir: dir, FS: disk})
	if rec.Head.Seq != 10 || rec.Cut != nil {
		t.Errorf("got %+v, want ten entries", rec)
	}
}

// A segment that could not be created leaves the old one unchanged. If it could not be renamed, it may have the new name:
// nothing is then written to the old one any more, even if it would fit, since the name would be wrong.
func TestFailedRotation(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		hit      string
		n        int // the operation, from the first of the rotation on; 0: none, the disk is full
		short    bool
		segments int
	}{
		{"create", 1, false, 1},
		{"", 0, false, 1},
		{"rename", 5, false, 2},
		{"rename", 5, true, 2}, // although it was renamed
	} {
		disk := faultfs.NewDisk()
		fsys := faultfs.NewFailing(disk, faultfs.Fault{})
		l, _ := open(t, journal.Options{Dir: dir, FS: fsys, SegmentBytes: 2000, ReserveBytes: 3000})
		grow(t, l, 3)
		for seq := uint64(4); seq < 10; seq++ {
			l.Append(entry(seq, 10))
		}
		fsys.Arm(faultfs.Fault{N: test.n, Err: syscall.ENOSPC, Short: test.short})
		if test.n == 0 {
			disk.Leave(0)
		}
		if err := l.Flush(); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, journal.ErrStopped) || fsys.Hit() != test.hit {
			t.Fatalf("%v: flush: got %v after %q failed", test, err, fsys.Hit())
		}
		disk.Free()
		grow(t, l, 1)
		testkit.Must(t, l.Close())
		_, rec := open(t, journal.Options{Dir: dir, FS: disk})
		if rec.Head.Seq != 4 || rec.Segments != test.segments {
			t.Errorf("%v: got %+v, want four entries in %d segments", test, rec, test.segments)
		}
	}
}

// The rest of a segment that never got its final name is not read as entries of the next.
func TestLeftNextSegment(t *testing.T) {
	t.Parallel()
	image := signedJournal(t)
	image[dir+"/next"] = []byte(strings.Repeat("x", 5000))
	disk := faultfs.FromImage(image)
	l, rec := open(t, journal.Options{Dir: dir, FS: disk, SegmentBytes: 1000, Signer: newHostKey(1)})
	grow(t, l, 6)
	testkit.Must(t, l.Close())
	if report := verify(t, disk, dir, journal.VerifyOptions{}); !report.OK() || report.Segments <= rec.Segments || report.Head.Seq != 46 {
		t.Errorf("got %+v", report)
	}
	if left, ok := disk.Image()[dir+"/next"]; ok {
		t.Errorf("%q is left", left)
	}
}

// A segment that another process has started is not overwritten.
func TestSegmentOfAnother(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, SegmentBytes: 600})
	grow(t, l, 1)
	f, err := disk.Create(segmentPath(2))
	testkit.Must(t, err)
	_, err = f.WriteAt([]byte("theirs"), 0)
	testkit.Must(t, err)
	for _, flush := range []func() error{l.Flush, l.FlushFromReserve} {
		l.Append(entry(2, 500))
		if damage := asDamage(t, flush()); damage.File != segmentPath(2) {
			t.Errorf("got %v", damage)
		}
	}
	if got := string(disk.Image()[segmentPath(2)]); got != "theirs" {
		t.Errorf("their segment is %q now", got)
	}
}

// After a failed fsync nothing is written or synced again, and entries that were covered before still are.
func TestFailedSyncStops(t *testing.T) {
	t.Parallel()
	fsys := faultfs.NewFailing(faultfs.NewDisk(), faultfs.Fault{})
	l, _ := open(t, journal.Options{Dir: dir, FS: fsys})
	grow(t, l, 3)
	l.Append(entry(4, 0))
	testkit.Must(t, l.Flush())
	fsys.Arm(faultfs.Fault{N: 1, Err: syscall.EIO})
	for range 2 {
		through, err := l.Sync()
		if through != 3 || !errors.Is(err, journal.ErrStopped) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("sync: got %d, %v", through, err)
		}
	}
	l.Append(entry(5, 0))
	for name, err := range map[string]error{"flush": l.Flush(), "checkpoint": l.Checkpoint(), "close": l.Close()} {
		if name != "checkpoint" && !errors.Is(err, journal.ErrStopped) {
			t.Errorf("%s: got %v, want ErrStopped", name, err)
		}
	}
	if n := fsys.Count(); n != 1 {
		t.Errorf("%d operations after the fsync that failed", n-1)
	}
	if err := l.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// An fsync that fails during a failed write is not repeated to remove that write.
func TestFailedSyncBesideFailedWrite(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	fsys := faultfs.NewFailing(disk, faultfs.Fault{})
	l, _ := open(t, journal.Options{Dir: dir, FS: fsys})
	l.Append(entry(1, 0))
	testkit.Must(t, l.Flush())
	disk.Hook = func(op faultfs.Op) {
		if op.Kind != faultfs.Write {
			return
		}
		if _, err := l.Sync(); !errors.Is(err, journal.ErrStopped) {
			t.Errorf("sync: got %v, want ErrStopped", err)
		}
	}
	fsys.Arm(faultfs.Fault{N: 1, Then: 1, Err: syscall.EIO, Short: true})
	l.Append(entry(2, 0))
	if err := l.Flush(); !errors.Is(err, journal.ErrStopped) {
		t.Errorf("flush: got %v, want ErrStopped", err)
	}
	if n := fsys.Count(); n != 3 {
		t.Errorf("%d operations, want the write, the fsync and the cut", n)
	}
}

// A failed write that cannot be removed does not stop the log: the next Flush removes it first, and nothing else is written
// before that. A failed fsync of the removal stops it.
func TestFailedCut(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	fsys := faultfs.NewFailing(disk, faultfs.Fault{})
	l, _ := open(t, journal.Options{Dir: dir, FS: fsys})
	grow(t, l, 3)
	before := segments(disk.Image())
	fsys.Arm(faultfs.Fault{N: 1, Then: 1, Err: syscall.EIO, Short: true})
	l.Append(entry(4, 0))
	if err := l.Flush(); !errors.Is(err, journal.ErrUncertain) || errors.Is(err, journal.ErrStopped) || !errors.Is(err, syscall.EIO) {
		t.Errorf("cut failed: got %v, want ErrUncertain", err)
	}
	fsys.Arm(faultfs.Fault{N: 1, Err: syscall.EIO})
	l.Append(entry(4, 0))
	if err := l.Flush(); !errors.Is(err, syscall.EIO) || errors.Is(err, journal.ErrUncertain) || fsys.Hit() != "truncate" || fsys.Count() != 1 {
		t.Errorf("cut failed again: got %v after %d operations", err, fsys.Count())
	}
	grow(t, l, 1)
	if got := segments(disk.Image()); !strings.HasPrefix(got, before) || strings.Count(got, "\n") != 4 {
		t.Errorf("the journal is %q, want four entries", got)
	}
	fsys.Arm(faultfs.Fault{N: 1, Then: 2, Err: syscall.ENOSPC, Short: true})
	l.Append(entry(5, 0))
	if err := l.Flush(); !errors.Is(err, journal.ErrStopped) || fsys.Count() != 3 {
		t.Errorf("sync of the cut failed: got %v after %d operations, want ErrStopped", err, fsys.Count())
	}
}

// Each operation of a rotation fails once, because a descriptor or permission is missing: only a failed fsync stops the
// log. The entries are refused, or are in the journal, and the log continues with the next write.
func TestRotationWithoutDescriptors(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for _, cause := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EACCES, syscall.EIO} {
		for n, last := 1, 1; n <= last; n++ {
			disk := faultfs.NewDisk()
			fsys := faultfs.NewFailing(disk, faultfs.Fault{})
			l, _ := open(t, journal.Options{Dir: dir, FS: fsys, SegmentBytes: 1500, ReserveBytes: 3000, Signer: newHostKey(1)})
			for l.Append(entry(l.Written()+1, 10)); len(segments(disk.Image())) < 1000; l.Append(entry(l.Written()+1, 10)) {
				testkit.Must(t, l.Flush())
			}
			fsys.Arm(faultfs.Fault{N: n, Err: cause})
			l.Append(entry(l.Written()+2, 300))
			before := l.Written()
			err := l.Flush()
			last = max(last, fsys.Count())
			kinds[fsys.Hit()]++
			if sync := strings.HasPrefix(fsys.Hit(), "sync"); errors.Is(err, journal.ErrStopped) != sync {
				t.Errorf("%v at a %s: got %v", cause, fsys.Hit(), err)
				continue
			} else if sync {
				continue
			}
			if err != nil && l.Written() != before {
				t.Errorf("%v at a %s: refused, and %d entries were written", cause, fsys.Hit(), l.Written()-before)
			}
			want := l.Written() + 3
			grow(t, l, 3)
			testkit.Must(t, l.Close())
			if report := verify(t, disk, dir, journal.VerifyOptions{}); !report.OK() || report.Head.Seq != want || report.Segments < 2 {
				t.Errorf("%v at a %s: got %+v, want %d entries in two segments", cause, fsys.Hit(), report, want)
			}
		}
	}
	for _, kind := range strings.Fields("create size allocate sync write open rename syncdir") {
		if kinds[kind] == 0 {
			t.Errorf("no %s failed: %v", kind, kinds)
		}
	}
}

// A rotation on the real file system in a process without descriptors: the entries are still written, and the next segment
// is started when there is a descriptor again.
func TestNoDescriptors(t *testing.T) {
	t.Parallel()
	var trouble int
	fsys := &noDescriptors{FS: journal.OSFS{}}
	l, _ := open(t, journal.Options{Dir: filepath.Join(testkit.Dir(t), "journal"), FS: fsys, SegmentBytes: 1000, Trouble: func(error) { trouble++ }})
	grow(t, l, 3)
	fsys.out = true
	grow(t, l, 20)
	fsys.out = false
	grow(t, l, 20)
	testkit.Must(t, l.Close())
	if trouble != 1 {
		t.Errorf("trouble was reported %d times, want once", trouble)
	}
}

// noDescriptors opens nothing while no descriptor is left.
type noDescriptors struct {
	journal.FS

	out bool
}

func (f *noDescriptors) Open(name string) (journal.File, error) {
	if f.out {
		return nil, syscall.EMFILE
	}
	return f.FS.Open(name)
}

func (f *noDescriptors) Create(name string) (journal.File, error) {
	if f.out {
		return nil, syscall.EMFILE
	}
	return f.FS.Create(name)
}

func (f *noDescriptors) SyncDir(name string) error {
	if f.out {
		return syscall.EMFILE
	}
	return f.FS.SyncDir(name)
}

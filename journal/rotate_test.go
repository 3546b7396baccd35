package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// An owner that calls RotateDue before each Flush never waits there for an fsync, a directory or a signer, however much it
// appends. The segments have at most their maximum length, and the end of each is signed by the Checkpoint that is due
// then.
func TestRotate(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	key := newHostKey(1)
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, SegmentBytes: 4000, ReserveBytes: 3000, Signer: key, CheckpointEvery: 1000})
	flushing, seq, rotations := false, uint64(0), 0
	grow := func() {
		seq++
		l.Append(entry(seq, 10+int(seq%7)*100))
	}
	disk.Hook = func(op faultfs.Op) {
		switch {
		case !flushing:
		case op.Kind == faultfs.Write, op.Kind == faultfs.Allocate: // of a segment, under its first name
		default:
			t.Errorf("operation %d on %s in Flush", op.Kind, op.Path)
		}
	}
	for n := range 200 {
		for range 1 + n%5 {
			grow()
		}
		if l.RotateDue() {
			rotations++
			before := l.Written()
			through, err := l.Rotate()
			if err != nil || through != before || !l.CheckpointDue() || l.RotateDue() {
				t.Fatalf("rotate: covers entry %d of %d, %v; another is due: %v", through, before, err, l.RotateDue())
			}
			if rotations%2 == 0 {
				testkit.Must(t, l.Checkpoint())
				if l.CheckpointDue() {
					t.Error("a checkpoint is due after it was written")
				}
			}
		}
		flushing, key.err = true, errors.New("asked to sign in Flush")
		testkit.Must(t, l.Flush())
		flushing, key.err = false, nil
	}
	testkit.Must(t, l.Close())
	image := disk.Image()
	ends := map[uint64]bool{}
	for _, cp := range checkpoints(t, disk) {
		ends[cp.Seq] = true
	}
	unsigned := 0
	for path, data := range image {
		if strings.HasSuffix(path, ".ndjson") {
			if len(data) > 4000 && strings.Count(string(data), "\n") > 5 {
				t.Errorf("%s has %d bytes", path, len(data))
			}
			if !ends[lastSeq(t, data)] {
				unsigned++
			}
		}
	}
	if rotations < 20 || unsigned > rotations/2+1 {
		t.Errorf("%d rotations, %d segments whose end was not signed", rotations, unsigned)
	}
	if report := verify(t, disk, dir, journal.VerifyOptions{}); !report.OK() || report.Head.Seq != seq || report.Segments != rotations+1 {
		t.Errorf("got %+v, want %d entries in %d segments", report, seq, rotations+1)
	}
}

func lastSeq(t *testing.T, segment []byte) uint64 {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(string(segment), "\n"), "\n")
	var r journal.Record
	testkit.Must(t, journal.ParseLine([]byte(lines[len(lines)-1]), &r))
	return r.Seq
}

// Each operation of Rotate fails once: only a failed fsync stops the log; other errors are reported once. The entries are
// written nevertheless, and the next segment is started later.
func TestFailedRotate(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for _, cause := range []error{syscall.EMFILE, syscall.ENOSPC, syscall.EIO} {
		for n, last := 1, 1; n <= last; n++ {
			disk := faultfs.NewDisk()
			fsys := faultfs.NewFailing(disk, faultfs.Fault{})
			told := 0
			l, _ := open(t, journal.Options{
				Dir: dir, FS: fsys, SegmentBytes: 3000, ReserveBytes: 3000, Signer: newHostKey(1),
				Trouble: func(error) { told++ },
			})
			for l.Append(entry(1, 10)); !l.RotateDue(); l.Append(entry(l.Written()+1, 10)) {
				testkit.Must(t, l.Flush())
			}
			fsys.Arm(faultfs.Fault{N: n, Err: cause})
			before := l.Written()
			through, err := l.Rotate()
			last = max(last, fsys.Count())
			if fsys.Hit() == "" {
				break // there are no more operations
			}
			kinds[fsys.Hit()]++
			stops := strings.HasPrefix(fsys.Hit(), "sync")
			if errors.Is(err, journal.ErrStopped) != stops || err != nil != stops {
				t.Errorf("%v at a %s: got %v", cause, fsys.Hit(), err)
			}
			if stops {
				continue
			}
			if through != before || told > 1 || told == 0 && cause != syscall.ENOSPC {
				t.Errorf("%v at a %s: covers entry %d of %d; trouble was reported %d times", cause, fsys.Hit(), through, before, told)
			}
			if l.RotateDue() {
				t.Errorf("%v at a %s: another try is due before the next Flush", cause, fsys.Hit())
			}
			testkit.Must(t, l.Flush())
			for range 20 {
				l.Append(entry(l.Written()+1, 10))
				if l.RotateDue() {
					_, err := l.Rotate()
					testkit.Must(t, err)
				}
				testkit.Must(t, l.Flush())
			}
			testkit.Must(t, l.Close())
			if report := verify(t, disk, dir, journal.VerifyOptions{}); !report.OK() || report.Head.Seq != before+21 || report.Segments < 2 {
				t.Errorf("%v at a %s: got %+v, want %d entries in two segments", cause, fsys.Hit(), report, before+21)
			}
		}
	}
	for _, kind := range strings.Fields("create size allocate sync write open rename syncdir truncate") {
		if kinds[kind] == 0 {
			t.Errorf("no %s failed: %v", kind, kinds)
		}
	}
}

// A full disk does not fail Rotate: the old segment is used while there is room, and Flush returns the error.
func TestRotateOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	told := 0
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, SegmentBytes: 3000, ReserveBytes: reserve, Trouble: func(error) { told++ }})
	grow(t, l, 1) // allocates room for the head mark
	disk.Leave(0)
	var refused error
	for refused == nil {
		l.Append(entry(l.Written()+1, 10))
		if l.RotateDue() {
			_, err := l.Rotate()
			testkit.Must(t, err)
		}
		refused = l.Flush()
	}
	noRoom(t, refused)
	l.Append(entry(l.Written()+1, 10))
	testkit.Must(t, l.FlushFromReserve())
	disk.Free()
	grow(t, l, 20)
	if told != 0 {
		t.Errorf("trouble was reported %d times", told)
	}
	testkit.Must(t, l.Close())
	if report := verify(t, disk, dir, journal.VerifyOptions{}); !report.OK() || report.Segments < 2 {
		t.Errorf("got %+v", report)
	}
}

// One owner on changing goroutines, like the loop: it appends while another goroutine rotates, and appends and flushes
// while another syncs; checkpoints are signed concurrently, and a reader follows. For the race detector.
func TestRotateBesideItsOwner(t *testing.T) {
	t.Parallel()
	const batches = 600
	dir := t.TempDir() + "/journal"
	l, _ := open(t, journal.Options{Dir: dir, SegmentBytes: 30_000, ReserveBytes: 10_000, Signer: newHostKey(1), CheckpointEvery: 100})
	var seq, durable uint64
	var reader, signers sync.WaitGroup
	reader.Go(func() { follow(t, dir, 10*batches, nil, l.Synced) })
	grow := func() {
		for range 5 {
			seq++
			l.Append(entry(seq, 20))
		}
	}
	whileBusy := func(job func() (uint64, error), beside func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			through, err := job()
			if err != nil || through < durable {
				t.Errorf("covers %d after %d: %v", through, durable, err)
			}
			durable = through
		}()
		beside()
		<-done
	}
	for range batches {
		grow()
		if l.RotateDue() {
			whileBusy(l.Rotate, grow)
		}
		testkit.Must(t, l.Flush())
		whileBusy(l.Sync, func() {
			grow()
			testkit.Must(t, l.Flush())
		})
		if l.CheckpointDue() {
			signers.Go(func() {
				if err := l.Checkpoint(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	signers.Wait()
	testkit.Must(t, l.Close())
	reader.Wait()
	report := verify(t, journal.OSFS{}, dir, journal.VerifyOptions{Keys: []string{newHostKey(1).Public()}})
	if !report.OK() || report.Head.Seq != seq || report.Vouched != seq || report.Segments < 50 {
		t.Errorf("got %+v, want %d entries", report, seq)
	}
}

// TestSegmentsEnd measures the segments of a journal with the settings of a kernel: each ends before it is longer than 48
// MiB, and not long before.
func TestSegmentsEnd(t *testing.T) {
	t.Parallel()
	const most, wanted = 48 << 20, 47 << 20
	where := t.TempDir()
	l, _, err := journal.Open(journal.Options{Dir: where, ReserveBytes: journal.DefaultReserveBytes})
	testkit.Must(t, err)
	for seq, rotated := uint64(1), false; !rotated; seq++ {
		l.Append(entry(seq, 100<<10))
		if rotated = l.RotateDue(); rotated {
			_, err := l.Rotate()
			testkit.Must(t, err)
		}
		testkit.Must(t, l.Flush())
	}
	testkit.Must(t, l.Close())
	segments, err := filepath.Glob(where + "/*.ndjson")
	testkit.Must(t, err)
	info, err := os.Stat(segments[0])
	testkit.Must(t, err)
	if len(segments) != 2 || info.Size() > most || info.Size() < wanted {
		t.Errorf("%d segments, the first of %d bytes; want 2, and between %d and %d", len(segments), info.Size(), wanted, most)
	}
}

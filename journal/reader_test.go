package journal_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// follow reads n entries of a journal that is being written.
func follow(t *testing.T, dir string, n uint64, notify <-chan struct{}, limit func() uint64) {
	r := journal.NewReader(nil, dir, journal.ReaderOptions{
		Follow: true, Notify: notify, Limit: limit, Poll: time.Millisecond,
	})
	for seq := uint64(1); seq <= n; seq++ {
		rec, err := r.Next(context.Background())
		if err != nil || rec.Seq != seq || limit() < seq {
			t.Errorf("entry %d: got %v, %v at a limit of %d", seq, rec, err, limit())
			break
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestReaderFrom(t *testing.T) {
	t.Parallel()
	for name, segment := range map[string]int64{"one segment": 1 << 20, "many segments": 20_000} {
		disk := faultfs.NewDisk()
		l, _ := open(t, journal.Options{Dir: dir, FS: disk, SegmentBytes: segment})
		grow(t, l, 1000)
		lines := slices.Collect(strings.Lines(segments(disk.Image())))
		for _, from := range []uint64{0, 1, 2, 3, 57, 58, 499, 500, 501, 999, 1000} {
			r := journal.NewReader(disk, dir, journal.ReaderOptions{From: from, Lines: from%2 == 1})
			for seq := max(from, 1); seq <= 1000; seq++ {
				rec, err := r.Next(t.Context())
				testkit.Must(t, err)
				if rec.Seq != seq || string(rec.Line)+"\n" != lines[seq-1] {
					t.Fatalf("%s, from %d: got entry %d where %d belongs", name, from, rec.Seq, seq)
				}
			}
			if _, err := r.Next(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("%s, from %d: got %v at the end", name, from, err)
			}
			testkit.Must(t, r.Close())
		}
		r := journal.NewReader(disk, dir, journal.ReaderOptions{From: 1001})
		if _, err := r.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("%s, after the end: got %v", name, err)
		}
		grow(t, l, 1)
		if rec, err := r.Next(t.Context()); err != nil || rec.Seq != 1001 {
			t.Errorf("%s, after it grew: got %v, %v", name, rec, err)
		}
	}
}

// The position in a record is the start of its line.
func TestReaderNamesThePlace(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, SegmentBytes: 2000})
	grow(t, l, 50)
	r := journal.NewReader(disk, dir, journal.ReaderOptions{From: 20})
	m := image(disk.Image())
	for range 31 {
		rec, err := r.Next(t.Context())
		testkit.Must(t, err)
		if !strings.HasPrefix(string(m[segmentPath(rec.Segment)][rec.Offset:]), string(rec.Line)+"\n") {
			t.Errorf("entry %d is not at byte %d of segment %d", rec.Seq, rec.Offset, rec.Segment)
		}
	}
}

// A follower waits for the directory, for the first entry, for a line to be completed, for Notify or for its poll.
func TestReaderFollows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.NewDisk()
		notify := make(chan struct{}, 1)
		r := journal.NewReader(disk, dir, journal.ReaderOptions{Follow: true, Notify: notify, Poll: time.Hour})
		var got []uint64
		var end error
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			var rec *journal.Record
			for rec, end = r.Next(ctx); end == nil; rec, end = r.Next(ctx) {
				got = append(got, rec.Seq)
			}
		}()
		want := func(what string, n int) {
			t.Helper()
			notify <- struct{}{}
			synctest.Wait()
			if len(got) != n || n > 0 && got[n-1] != uint64(n) || end != nil {
				t.Fatalf("%s: got entries %v, %v, want %d", what, got, end, n)
			}
		}
		want("no directory", 0)
		l, _ := open(t, journal.Options{Dir: dir, FS: disk, SegmentBytes: 500})
		want("no entry", 0)
		for n := 1; n < 6; n++ {
			grow(t, l, 1)
			want("an entry a segment", n)
		}
		f, err := disk.Create(segmentPath(5))
		testkit.Must(t, err)
		size, err := f.Size()
		testkit.Must(t, err)
		_, err = f.WriteAt([]byte(`{"seq":6,"prev":"12`), size)
		testkit.Must(t, err)
		want("half an entry", 5)
		testkit.Must(t, f.Truncate(size))
		want("half an entry taken back", 5)
		grow(t, l, 1)
		want("an entry in its place", 6)
		grow(t, l, 1)
		<-time.After(time.Hour) // the poll, on the bubble's clock
		synctest.Wait()
		if len(got) != 7 {
			t.Errorf("an entry without a Notify: got entries %v, want 7", got)
		}
		cancel()
		synctest.Wait()
		if !errors.Is(end, context.Canceled) {
			t.Errorf("got %v, want the context's error", end)
		}
		testkit.Must(t, r.Close())
	})
}

// With Limit, a reader does not return whole lines of a write that failed and was taken back, even if it has buffered them.
func TestReaderIsNotAheadOfLimit(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	fsys := faultfs.NewFailing(disk, faultfs.Fault{})
	l, _ := open(t, journal.Options{Dir: dir, FS: fsys})
	grow(t, l, 2)
	r := journal.NewReader(disk, dir, journal.ReaderOptions{Limit: l.Written})
	next := func() uint64 {
		rec, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return 0
		}
		testkit.Must(t, err)
		return rec.Seq
	}
	disk.Hook = func(op faultfs.Op) {
		if op.Kind == faultfs.Truncate {
			for _, want := range []uint64{1, 2, 0, 0} {
				if got := next(); got != want {
					t.Errorf("before the failed write was removed: read entry %d, want %d", got, want)
				}
			}
		}
	}
	for seq := uint64(3); seq < 9; seq++ {
		l.Append(entry(seq, 1))
	}
	fsys.Arm(faultfs.Fault{N: 1, Err: syscall.ENOSPC, Short: true})
	if err := l.Flush(); err == nil {
		t.Fatal("the write did not fail")
	}
	grow(t, l, 6)
	for _, want := range []uint64{3, 4, 5, 6, 7, 8, 0} {
		if got := next(); got != want {
			t.Errorf("after that write: read entry %d, want %d", got, want)
		}
	}
}

func TestReaderRefusesDamage(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, SegmentBytes: 1000})
	grow(t, l, 12)
	testkit.Must(t, l.Close())
	for name, c := range map[string]struct {
		change func(image)
		seq    uint64
		lines  uint64 // the same for a reader of lines; 0: the same
	}{
		"edited entry":    {change: edit(4, `"pid":4`, `"pid":5`), seq: 5},
		"broken entry":    {edit(5, `"pid":5`, `"pid":x`), 5, 6},
		"segment cut":     {change: func(m image) { m[segmentPath(4)] = m[segmentPath(4)][:500] }, seq: 5},
		"line end gone":   {change: func(m image) { p := segmentPath(4); m[p] = m[p][:len(m[p])-1] }, seq: 6},
		"line unfinished": {change: func(m image) { m[segmentPath(4)] = append(m[segmentPath(4)], 'x') }, seq: 7},
		"first not there": {change: func(m image) { delete(m, segmentPath(1)) }, seq: 1},
	} {
		m := image(disk.Image())
		c.change(m)
		for _, lines := range []bool{false, true} {
			r := journal.NewReader(faultfs.FromImage(m), dir, journal.ReaderOptions{Lines: lines})
			var err error
			for err == nil {
				_, err = r.Next(t.Context())
			}
			want := c.seq
			if lines {
				want = max(want, c.lines)
			}
			if damage := asDamage(t, err); damage.Seq != want {
				t.Errorf("%s, lines: %t: got %v, want a fault at entry %d", name, lines, damage, want)
			}
			testkit.Must(t, r.Close())
		}
	}
}

// A failed operation stops a reader once: the next call continues at the same place.
func TestReaderGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, SegmentBytes: 2000})
	grow(t, l, 300)
	fsys := faultfs.NewFailing(disk, faultfs.Fault{})
	for n, last := 0, 1; n <= last; n++ {
		fsys.Arm(faultfs.Fault{N: n, Err: syscall.EIO})
		r := journal.NewReader(fsys, dir, journal.ReaderOptions{From: 290})
		seq, failed := uint64(290), false
		for {
			rec, err := r.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if errors.Is(err, syscall.EIO) && !failed {
				failed = true
				continue
			}
			testkit.Must(t, err)
			if rec.Seq != seq {
				t.Fatalf("operation %d (%s) failed: got entry %d, want %d", n, fsys.Hit(), rec.Seq, seq)
			}
			seq++
		}
		if n == 0 {
			last = fsys.Count()
		}
		if seq != 301 || failed != (n > 0) {
			t.Errorf("operation %d (%s) failed: read up to entry %d, failed %v", n, fsys.Hit(), seq-1, failed)
		}
		testkit.Must(t, r.Close())
		testkit.Must(t, r.Close())
	}
}

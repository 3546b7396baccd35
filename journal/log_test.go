package journal_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

func TestSegments(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	opt := journal.Options{Dir: dir, FS: disk, SegmentBytes: 1000}
	for start := range uint64(3) {
		l, rec := open(t, opt)
		if rec.Head.Seq != start*10 || rec.Entries != start*10 || rec.Cut != nil {
			t.Fatalf("start %d found %+v", start, rec)
		}
		grow(t, l, 10)
		testkit.Must(t, l.Close())
	}
	var names []string
	for path, data := range disk.Image() {
		if first, ok := strings.CutSuffix(path, ".ndjson"); ok {
			names = append(names, first)
			if len(data) > 1100 {
				t.Errorf("%s: %d bytes, one batch above the limit of 1000 at most", path, len(data))
			}
		}
	}
	slices.Sort(names)
	// An entry has about 300 bytes, so a segment has one batch of three, or only one batch of one.
	if len(names) != 12 || names[0] != dir+"/00000000000000000001" || names[1] != dir+"/00000000000000000004" {
		t.Errorf("got segments %v", names)
	}
}

func TestBatchLongerThanASegment(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, SegmentBytes: 100})
	for _, size := range []int{500, 5 << 20} {
		l.Append(entry(1, size))
		l.Append(entry(2, size))
		testkit.Must(t, l.Flush())
	}
	testkit.Must(t, l.Close())
	_, rec := open(t, journal.Options{Dir: dir, FS: disk})
	if rec.Segments != 2 || rec.Head.Seq != 4 {
		t.Errorf("got %+v, want four entries in two segments", rec)
	}
}

func TestAppendDoesNoIO(t *testing.T) {
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk})
	e := entry(1, 100)
	for range 2000 {
		l.Append(e)
	}
	disk.Hook = func(op faultfs.Op) { t.Errorf("append does %v", op) }
	l.Append(e)
	disk.Hook = nil
	testkit.Must(t, l.Flush())
	if n := testing.AllocsPerRun(1000, func() { l.Append(e) }); n > 0 {
		t.Errorf("%v allocations an entry", n)
	}
}

func TestFlushIsOneWrite(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk})
	var ops []faultfs.Op
	disk.Hook = func(op faultfs.Op) { ops = append(ops, op) }
	for seq := range uint64(100) {
		l.Append(entry(seq+1, 100))
	}
	testkit.Must(t, l.Flush())
	testkit.Must(t, l.Flush())
	if len(ops) != 1 || ops[0].Kind != faultfs.Write {
		t.Errorf("got %v, want one write", ops)
	}
}

func TestSyncWithNothingNew(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk})
	l.Append(entry(1, 0))
	if through, err := l.Sync(); through != 0 || err != nil {
		t.Errorf("sync before flush: got %d, %v", through, err)
	}
	testkit.Must(t, l.Flush())
	if l.Written() != 1 || l.Synced() != 0 {
		t.Errorf("after flush: %d written, %d synced", l.Written(), l.Synced())
	}
	if through, err := l.Sync(); through != 1 || err != nil || l.Synced() != 1 {
		t.Errorf("sync: got %d, %v", through, err)
	}
	disk.Hook = func(op faultfs.Op) { t.Errorf("a second sync does %v", op) }
	if through, err := l.Sync(); through != 1 || err != nil {
		t.Errorf("sync: got %d, %v", through, err)
	}
}

func TestAppendPanicsOverWhatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		l.Append(&journal.Entry{Request: []byte("{\n}")})
	}()
	grow(t, l, 1)
	testkit.Must(t, l.Close())
	if _, rec := open(t, journal.Options{Dir: dir, FS: disk}); rec.Head.Seq != 1 {
		t.Errorf("got %+v, want only the entry after the panic", rec)
	}
}

func TestOneWriter(t *testing.T) {
	t.Parallel()
	opt := journal.Options{Dir: dir, FS: faultfs.NewDisk()}
	l, _ := open(t, opt)
	if _, _, err := journal.Open(opt); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("second open: got %v, want ErrLocked", err)
	}
	testkit.Must(t, l.Close())
	l.Append(entry(1, 0))
	_, err := l.Sync()
	for name, err := range map[string]error{"flush": l.Flush(), "sync": err} {
		if !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s after close: got %v, want ErrClosed", name, err)
		}
	}
	open(t, opt)
}

// TestClosedLogIsFree: a closed journal can be opened, although a child that this process is starting has its descriptors.
func TestClosedLogIsFree(t *testing.T) {
	t.Parallel()
	opt := journal.Options{Dir: testkit.Dir(t)}
	l, _, err := journal.Open(opt)
	testkit.Must(t, err)
	testkit.Forked(t, opt.Dir)
	testkit.Must(t, l.Close())
	l, _, err = journal.Open(opt)
	testkit.Must(t, err)
	testkit.Must(t, l.Close())
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]journal.Options{
		"no directory":        {},
		"no parent":           {Dir: "/a/b"},
		"negative segments":   {Dir: dir, SegmentBytes: -1},
		"negative checkpoint": {Dir: dir, CheckpointEvery: -1},
		"other kind of key":   {Dir: dir, Signer: otherKey{}},
	} {
		opt.FS = faultfs.NewDisk()
		if _, _, err := journal.Open(opt); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

type otherKey struct{ journal.Signer }

func (otherKey) Public() string { return "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=" }

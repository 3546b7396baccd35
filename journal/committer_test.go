package journal_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// While an fsync is held back, everything that is flushed and requested shares the next one, and none is acknowledged.
func TestCommitterShares(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{Dir: dir, FS: disk})
	began, finish := make(chan struct{}), make(chan struct{})
	disk.Hook = func(op faultfs.Op) {
		if op.Kind == faultfs.Sync {
			began <- struct{}{}
			<-finish
		}
	}
	acks := make(chan uint64, 10)
	c := journal.NewCommitter(l, func(through uint64, err error) {
		if err != nil {
			t.Error(err)
		}
		acks <- through
	})
	commit := func(seq uint64) {
		l.Append(entry(seq, 0))
		check(t, l.Flush())
		c.Request()
	}
	commit(1)
	<-began
	for seq := uint64(2); seq <= 20; seq++ {
		commit(seq)
	}
	if l.Synced() != 0 || len(acks) != 0 {
		t.Errorf("%d synced and %d acknowledged before the fsync was done", l.Synced(), len(acks))
	}
	finish <- struct{}{}
	<-began
	if got := <-acks; got != 1 {
		t.Errorf("the first fsync covers entry %d, want 1", got)
	}
	finish <- struct{}{}
	if got := <-acks; got != 20 {
		t.Errorf("the second fsync covers entry %d, want 20", got)
	}
	disk.Hook = nil
	c.Close()
	check(t, l.Close())
	if len(acks) != 0 {
		t.Errorf("%d more acknowledgements than requests", len(acks))
	}
}

// Close serves what was requested, once, and requests after it are nothing.
func TestCommitterCloses(t *testing.T) {
	t.Parallel()
	for range 200 {
		l, _ := open(t, journal.Options{Dir: dir, FS: faultfs.NewDisk()})
		var through atomic.Uint64
		c := journal.NewCommitter(l, func(n uint64, err error) { through.Store(n) })
		l.Append(entry(1, 0))
		check(t, l.Flush())
		c.Request()
		c.Close()
		if through.Load() != 1 {
			t.Fatalf("acknowledged entry %d, want 1", through.Load())
		}
		c.Request()
		c.Close()
		check(t, l.Close())
	}
}

func TestCommitterTellsOfFailure(t *testing.T) {
	t.Parallel()
	fsys := faultfs.NewFailing(faultfs.NewDisk(), faultfs.Fault{})
	l, _ := open(t, journal.Options{Dir: dir, FS: fsys})
	errs := make(chan error)
	c := journal.NewCommitter(l, func(_ uint64, err error) { errs <- err })
	l.Append(entry(1, 0))
	check(t, l.Flush())
	fsys.Arm(faultfs.Fault{N: 1, Err: syscall.EIO})
	for range 2 {
		c.Request()
		if err := <-errs; !errors.Is(err, journal.ErrStopped) {
			t.Errorf("got %v, want ErrStopped", err)
		}
	}
	c.Close()
	if err := l.Close(); !errors.Is(err, journal.ErrStopped) {
		t.Errorf("close: got %v", err)
	}
}

// A checkpoint that is due is signed beside the syncs: an entry is acknowledged while its signature is held back.
func TestCommitterSignsBesideIt(t *testing.T) {
	t.Parallel()
	disk := faultfs.NewDisk()
	key := &slowKey{hostKey: newHostKey(1), asked: make(chan struct{}), answer: make(chan struct{})}
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, Signer: key, CheckpointEvery: 2})
	acks := make(chan uint64, 10)
	c := journal.NewCommitter(l, func(through uint64, _ error) { acks <- through })
	for seq := uint64(1); seq <= 4; seq++ {
		l.Append(entry(seq, 0))
		check(t, l.Flush())
		c.Request()
		if got := <-acks; got != seq {
			t.Errorf("acknowledged entry %d, want %d", got, seq)
		}
		if seq == 2 {
			<-key.asked
		}
	}
	key.answer <- struct{}{}
	<-key.asked
	key.answer <- struct{}{}
	c.Close()
	if got := seqs(checkpoints(t, disk)); got != "[2 4]" {
		t.Errorf("got checkpoints %s, want one of entry 2 and one of entry 4", got)
	}
	check(t, l.Close())
}

// An owner that appends as fast as it can, small segments, checkpoints and a follower, on a real file system: run it with
// the race detector. Whatever is acknowledged is what an fsync of the right file covered.
func TestCommitterRunsBesideItsOwner(t *testing.T) {
	t.Parallel()
	const entries = 3000
	dir := t.TempDir() + "/journal"
	l, _ := open(t, journal.Options{Dir: dir, SegmentBytes: 20_000, Signer: newHostKey(1), CheckpointEvery: 100})
	var last atomic.Uint64
	acked := make(chan struct{}, 1)
	c := journal.NewCommitter(l, func(through uint64, err error) {
		if err != nil || through < last.Load() || through > l.Written() {
			t.Errorf("acknowledged %d after %d of %d: %v", through, last.Load(), l.Written(), err)
		}
		last.Store(through)
		select {
		case acked <- struct{}{}:
		default:
		}
	})
	var wg sync.WaitGroup
	wg.Go(func() { follow(t, dir, entries, acked, l.Synced) })
	for seq := uint64(1); seq <= entries; seq++ {
		l.Append(entry(seq, 20))
		if seq%5 == 0 {
			check(t, l.Flush())
			c.Request()
		}
	}
	c.Close()
	if last.Load() != entries {
		t.Errorf("acknowledged %d of %d", last.Load(), entries)
	}
	wg.Wait()
	check(t, l.Close())
	report := verify(t, journal.OSFS{}, dir, journal.VerifyOptions{Keys: []string{newHostKey(1).Public()}})
	if !report.OK() || report.Head.Seq != entries || report.Vouched != entries || report.Checkpoints < entries/100 {
		t.Errorf("got %+v", report)
	}
}

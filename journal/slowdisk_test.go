package journal_test

import (
	"errors"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// Waiting for a slow disk lets the fake clock advance, also while another sync runs: two syncs, a Rotate, a failed write
// that is taken back, and a Close.
func TestSlowDiskInFakeTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.NewDisk()
		fsys := faultfs.NewFailing(disk, faultfs.Fault{})
		l, _ := open(t, journal.Options{Dir: dir, FS: fsys, SegmentBytes: 1000, Signer: newHostKey(1)})
		slow := &faultfs.Slow{Each: 10 * time.Millisecond}
		disk.Hook = slow.Hook
		var all sync.WaitGroup
		syncs := func() {
			all.Go(func() {
				_, err := l.Sync()
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		begin := time.Now()
		l.Append(entry(1, 10))
		testkit.Must(t, l.Flush())
		syncs()
		syncs()
		l.Append(entry(2, 10))
		fsys.Arm(faultfs.Fault{N: 1, Err: syscall.EIO, Short: true})
		if err := l.Flush(); !errors.Is(err, syscall.EIO) || time.Since(begin) < 20*time.Millisecond {
			t.Errorf("flush: got %v after %v", err, time.Since(begin))
		}
		for seq := uint64(2); !l.RotateDue(); seq++ {
			testkit.Must(t, l.Flush())
			l.Append(entry(seq, 10))
		}
		syncs()
		_, err := l.Rotate()
		testkit.Must(t, err)
		testkit.Must(t, l.Flush())
		all.Go(func() {
			if err := l.Checkpoint(); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		testkit.Must(t, l.Close())
		all.Wait()
		if report := verify(t, disk, dir, journal.VerifyOptions{}); !report.OK() || report.Checkpoints != 2 || report.Segments != 2 {
			t.Errorf("got %+v after %d syncs in %v", report, slow.Syncs(), time.Since(begin))
		}
	})
}

// A sync covers what was flushed before it started, and nothing that was flushed during it.
func TestSyncBeginsAndCompletes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.NewDisk()
		l, _ := open(t, journal.Options{Dir: dir, FS: disk})
		gate := &faultfs.Gate{}
		disk.Hook = gate.Hook
		var through uint64
		sync := func() {
			go func() {
				var err error
				if through, err = l.Sync(); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		for seq := uint64(1); seq < 10; seq += 3 {
			l.Append(entry(seq, 10))
			testkit.Must(t, l.Flush())
			sync()
			l.Append(entry(seq+1, 10))
			testkit.Must(t, l.Flush())
			gate.Complete(0)
			synctest.Wait()
			if through != seq || l.Synced() != seq || l.Written() != seq+1 {
				t.Errorf("a sync covers entry %d of %d, want %d", through, l.Written(), seq)
			}
			l.Append(entry(seq+2, 10))
			testkit.Must(t, l.Flush())
		}
		gate.Open()
		testkit.Must(t, l.Close())
	})
}

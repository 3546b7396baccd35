package actors_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel/idempotency"
)

const interval = 100 * time.Millisecond

func startLate(t *testing.T) *system {
	return startHosting(t, faultfs.NewDisk(), newRecorders().domains(), idempotency.New(), textLog, actors.Hosting{}, syncing(interval))
}

// TestSyncInterval: with an interval, a command is answered before it is on disk, and its effects may be seen. It is on
// disk an interval later, with everything that was done meanwhile, and nothing is synced while nothing happens.
func TestSyncInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startLate(t)
		gate := s.holdSyncs()
		writer, reader := s.connect(), s.connect()
		writer.send(set("a", "x"))
		expect(t, writer, "a 1")
		reader.send(get("b"))
		expect(t, reader, `b "x"`)
		time.Sleep(interval - time.Millisecond)
		writer.send(set("c", "y"))
		expect(t, writer, "c 2")
		synctest.Wait()
		if n := gate.begun.Load(); n != 0 {
			t.Errorf("%d syncs before the interval was over", n)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n := gate.begun.Load(); n != 1 {
			t.Errorf("%d syncs after the interval, want 1", n)
		}
		gate.open()
		time.Sleep(10 * interval)
		synctest.Wait()
		if n := gate.begun.Load(); n != 1 {
			t.Errorf("%d syncs in all, want 1: nothing was written since", n)
		}
	})
}

// TestSyncIntervalEnds: answered commands are on disk when the kernel has ended cleanly.
func TestSyncIntervalEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startLate(t)
		c := s.connect()
		c.send(set("a", "x"))
		expect(t, c, "a 1")
		_ = c.link.Close()
		<-c.done
		if err := s.closed(); err != nil {
			t.Fatal(err)
		}
		files := s.disk.Crash(nil, faultfs.LoseAll)
		record, recovery, err := journal.Open(journal.Options{Dir: "/journal", FS: files})
		if err != nil || recovery.Cut != nil || record.Written() != 1 {
			t.Fatalf("after a power cut: %v, %v; want one entry", err, recovery.Cut)
		}
		if err := record.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

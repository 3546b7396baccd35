package actors_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/schema"
)

// TestFailedSync shows the end of a kernel that cannot know what is on its disk: it stops, says why, and acknowledges
// nothing that was not known to be there, neither what the fsync was for nor what queued up behind it.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newLibrary().domains())
		gate := s.holdSyncs()
		a, b, c := s.connect(), s.connect(), s.connect()
		a.send(set("a", "x"))
		synctest.Wait()
		b.send(set("b", "y"), get("b2"))
		c.send(processes("c"))
		expect(t, c, `c ""`)
		s.room.breakSync(syscall.EIO)
		gate.open()
		<-s.kernel.Stopping()
		synctest.Wait()
		got := append(a.pending(), b.pending()...)
		if diff := cmp.Diff([]string{"a 503", "b 503", "b2 503"}, show(got)); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		c.send(set("d", "z"), get("e"))
		expect(t, c, "d 503", "e 503")
		if err := s.end(); !errors.Is(err, syscall.EIO) {
			t.Errorf("close kernel: %v, want the failed fsync", err)
		}
	})
}

// TestFailedSyncIsUncertain shows that nobody is told what cannot be known: a call whose fsync failed may be on the disk
// all the same, and be found there at the next start.
func TestFailedSyncIsUncertain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newLibrary().domains())
		c := s.connect()
		s.room.breakSync(syscall.EIO)
		c.send(set("a", "x"))
		synctest.Wait()
		got := c.pending()
		if len(got) != 1 || got[0].Code != "503" || strings.Contains(got[0].Text, "nothing was done") {
			t.Errorf("answers %v (%s)", show(got), got[0].Text)
		}
		if diff := cmp.Diff([]string{"x"}, s.replayed()[schema.Memory]); diff != "" {
			t.Errorf("state of the next start (-want +got):\n%s", diff)
		}
	})
}

// TestFailedSyncWhileRestoring has a sync fail while states are made anew because of a write that failed: what the domains hold
// meanwhile is answered, so that the kernel can end.
func TestFailedSyncWhileRestoring(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startReserving(t, newLibrary().domains(), actors.Hosting{})
		gate := s.holdSyncs()
		release := make(chan struct{})
		s.restoring = func(name schema.Domain) {
			if name == schema.Process {
				<-release
			}
		}
		a, b, c := s.connect(), s.connect(), s.connect()
		a.send(set("a", "x"))
		synctest.Wait()
		s.disk.Leave(0)
		for range 20 {
			b.send(set("b", strings.Repeat("y", 1000)))
		}
		expect(t, b, slices.Repeat([]string{"b 503"}, 20)...)
		c.send(set("c", "z"))
		synctest.Wait()
		s.room.breakSync(syscall.EIO)
		gate.open()
		<-s.kernel.Stopping()
		expect(t, a, "a 503")
		close(release)
		expect(t, c, "c 503")
		if err := s.end(); !errors.Is(err, syscall.EIO) {
			t.Errorf("close kernel: %v, want the failed fsync", err)
		}
	})
}

// TestFailedSyncThenPowerCut shows that the state after a failed fsync and a power cut holds all that was acknowledged.
func TestFailedSyncThenPowerCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := startWith(t, newLibrary().domains())
		c := s.connect()
		c.send(set("a", "x"))
		expect(t, c, "a 1")
		s.files.Arm(faultfs.Fault{N: 2, Err: syscall.EIO})
		c.send(set("b", "y"))
		expect(t, c, "b 503")
		if hit := s.files.Hit(); hit != "sync" {
			t.Fatalf("the fault hit a %q", hit)
		}
		<-s.kernel.Stopping()
		image := s.disk.Crash(nil, faultfs.LoseAll).Image()
		for path, data := range image {
			if strings.HasSuffix(path, ".ndjson") && !strings.Contains(string(data), `"key":"x"`) {
				t.Errorf("%s lost what was acknowledged: %s", path, data)
			}
		}
		if err := s.end(); !errors.Is(err, syscall.EIO) {
			t.Errorf("close kernel: %v, want the failed fsync", err)
		}
	})
}

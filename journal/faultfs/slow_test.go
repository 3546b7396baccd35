package faultfs_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// Each sync takes the configured time on the fake clock, some take longer, and these are the same in each run.
func TestSlow(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, seed uint64) (took []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			d, f := disk(t)
			slow := &faultfs.Slow{Each: 10 * time.Millisecond, Stall: 500 * time.Millisecond, Every: 8, Seed: seed}
			d.Hook = slow.Hook
			for range 100 {
				write(t, f, 0, "x")
				begin := time.Now()
				testkit.Must(t, f.Sync())
				took = append(took, time.Since(begin))
			}
			begin := time.Now()
			testkit.Must(t, d.SyncDir("/d"))
			if time.Since(begin) < slow.Each || slow.Syncs() != 101 {
				t.Errorf("a directory took %v, after %d syncs in all", time.Since(begin), slow.Syncs())
			}
		})
		return took
	}
	first := run(t, 1)
	stalls := 0
	for _, d := range first {
		switch d {
		case 500 * time.Millisecond:
			stalls++
		case 10 * time.Millisecond:
		default:
			t.Fatalf("a sync took %v", d)
		}
	}
	if stalls < 3 || stalls > 40 || !slices.Equal(first, run(t, 1)) || slices.Equal(first, run(t, 2)) {
		t.Errorf("%d of 100 syncs stalled, or not those that the seed says", stalls)
	}
}

// Syncs are completed in the order that a test chooses, and cover what was written before they began.
func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, f := disk(t)
		gate := &faultfs.Gate{}
		d.Hook = gate.Hook
		var syncs sync.WaitGroup
		begin := func(sync func() error) {
			syncs.Go(func() {
				if err := sync(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		want := func(content string, held ...faultfs.Op) {
			t.Helper()
			synctest.Wait()
			if got := found(d, rng(), faultfs.LoseAll); got != content || !slices.Equal(gate.Held(), held) {
				t.Errorf("%q is durable, want %q; held: %v, want %v", got, content, gate.Held(), held)
			}
		}
		file, dir := faultfs.Op{Kind: faultfs.Sync, Path: path}, faultfs.Op{Kind: faultfs.SyncDir, Path: "/d"}
		write(t, f, 0, "1")
		begin(f.Sync)
		begin(func() error { return d.SyncDir("/d") })
		write(t, f, 1, "2")
		want("synced", file, dir)
		gate.Complete(1)
		want("synced", file)
		gate.Complete(0)
		want("1ynced")
		begin(f.Sync)
		want("1ynced", file)
		gate.Open()
		want("12nced")
		write(t, f, 2, "3")
		testkit.Must(t, f.Sync())
		gate.Shut()
		gate.Holds = func(op faultfs.Op) bool { return op.Kind == faultfs.SyncDir }
		testkit.Must(t, f.Sync())
		begin(func() error { return d.SyncDir("/d") })
		want("123ced", dir)
		gate.Complete(0)
		syncs.Wait()
		if gate.Begun() != 5 {
			t.Errorf("%d syncs have reached the gate", gate.Begun())
		}
	})
}

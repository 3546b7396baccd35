package journal_test

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// The power is cut at each operation of random workloads, and at operations of the recoveries: each time the journal opens,
// and has a prefix of what was appended that includes the last entry that Sync covered.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	want := int64(testkit.Rounds(5_000, 5_000, 100_000)) // power cuts
	var points atomic.Int64
	t.Run("workloads", func(t *testing.T) {
		for part := range uint64(4) {
			t.Run(strconv.FormatUint(part, 10), func(t *testing.T) {
				t.Parallel()
				for seed := part; points.Load() < want; seed += 4 {
					w := newWorkload(seed, faultfs.NewDisk())
					w.run()
					points.Add(w.points)
					if w.err != nil {
						t.Fatalf("seed %d: %v", seed, w.err)
					}
				}
			})
		}
	})
	t.Logf("%d crash points", points.Load())
}

// A test of the test: with an fsync that does nothing, of files or of directories, the same workloads show a loss.
func TestPowerLossIsSeen(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]func(*faultfs.Disk){
		"file":      func(d *faultfs.Disk) { d.NoSync = true },
		"directory": func(d *faultfs.Disk) { d.NoSyncDir = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var points int64
			for seed := range uint64(50) {
				disk := faultfs.NewDisk()
				lie(disk)
				w := newWorkload(seed, disk)
				w.run()
				points += w.points
				if w.err != nil {
					t.Logf("seen after %d crash points: %v", points, w.err)
					return
				}
			}
			t.Fatalf("%d crash points and no loss was seen", points)
		})
	}
}

var errLost = errors.New("a promise was broken")

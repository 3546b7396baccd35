package journal_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// TestAwait shows that a waiter returns when the fsync of its entry begins, or has ended, not before, and when the log has
// stopped.
func TestAwait(t *testing.T) {
	t.Parallel()
	t.Run("syncing", func(t *testing.T) { t.Parallel(); await(t, (*journal.Log).AwaitSyncing, 1) })
	t.Run("synced", func(t *testing.T) { t.Parallel(); await(t, (*journal.Log).AwaitSynced, 0) })
}

// await checks wait, which during an fsync must return for the entry that this makes durable (ahead is 1), or must not (0).
func await(t *testing.T, wait func(*journal.Log, context.Context, uint64), ahead int) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.NewDisk()
		log, _, err := journal.Open(journal.Options{Dir: "/journal", FS: disk})
		testkit.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		waits := func(ctx context.Context, seq uint64) <-chan struct{} {
			told := make(chan struct{})
			go func() {
				defer close(told)
				wait(log, ctx, seq)
			}()
			synctest.Wait()
			return told
		}
		second, third, given, never := waits(t.Context(), 2), waits(t.Context(), 3), waits(ctx, 9), waits(t.Context(), 9)
		check := func(what string, want ...bool) {
			t.Helper()
			synctest.Wait()
			for i, told := range []<-chan struct{}{second, third, given, never} {
				got := false
				select {
				case <-told:
					got = true
				default:
				}
				if got != want[i] {
					t.Errorf("%s: waiter %d has returned: %t", what, i, got)
				}
			}
		}
		for seq := range 3 {
			log.Append(benchEntry())
			testkit.Must(t, log.Flush())
			check("written", seq > 1, false, false, false)
			disk.Hook = func(op faultfs.Op) {
				if op.Kind == faultfs.Sync {
					disk.Hook = nil
					check("while it is synced", seq+ahead > 1, seq+ahead > 2, false, false)
				}
			}
			if _, err := log.Sync(); err != nil {
				t.Fatal(err)
			}
			check("synced", seq > 0, seq > 1, false, false)
		}
		<-waits(t.Context(), 1)
		cancel()
		check("given up", true, true, true, false)
		testkit.Must(t, log.Close())
		check("closed", true, true, true, true)
	})
}

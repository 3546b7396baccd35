package state

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/store"
)

// snapshotFormat changes with the form of any part's snapshot, so that a newer kernel does not read an older one's.
const snapshotFormat = 4

// projections is the store, with the goroutine that keeps its index up.
type projections struct {
	store  *store.Store
	cancel context.CancelFunc
	follow sync.WaitGroup
}

// openProjections opens the store. Nothing in it is needed: without it a start replays the whole journal, and a question
// to the audit log reads it.
func (s *State) openProjections(cfg *config.Config) {
	trouble := func(err error) { s.log.Warn("projections of the journal", "error", err) }
	db, err := store.Open(filepath.Join(cfg.StateDir, "projections.db"), store.Options{
		Holds: store.InJournal(nil, s.Dir, s.Journal.Synced), Trouble: trouble,
	})
	if err != nil {
		s.log.Warn("no projections: starts and questions to the audit log read the whole journal", "error", err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.store = &projections{store: db, cancel: cancel}
	s.Snapshots = &actors.Snapshots{Store: db, Form: snapshotForm(cfg), Log: s.log}
	follower := store.NewFollower(db, store.FollowerOptions{Dir: s.Dir, Limit: s.Journal.Synced, Await: s.Journal.AwaitSynced, Trouble: trouble})
	s.store.follow.Go(func() {
		if err := follower.Run(ctx); err != nil {
			trouble(fmt.Errorf("follow journal: %w", err))
		}
	})
}

// snapshotForm names what a snapshot depends on beside the journal: its format, and the pools that are configured.
func snapshotForm(cfg *config.Config) string {
	sum := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(cfg.Resources)) {
		fmt.Fprintf(sum, "%q=%v\n", name, cfg.Resources[name])
	}
	return fmt.Sprintf("%d-%016x", snapshotFormat, sum.Sum64())
}

// close ends the follower and closes the file.
func (p *projections) close() error {
	if p == nil {
		return nil
	}
	p.cancel()
	p.follow.Wait()
	return p.store.Close()
}

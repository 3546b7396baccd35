package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/record"
)

// snapshotRest bounds the cost of snapshots: the pause after a round is this many times as long as the round took.
const snapshotRest = 30

// beginSnapshots starts a round if one is due.
func (a *audit) beginSnapshots(ctx actor.Context) {
	s := &a.snapshots
	if s.store == nil || s.running || s.pauses > 0 || a.journal.Head().Seq < s.due || len(a.rebuilding) > 0 || time.Now().Before(s.resting) {
		return
	}
	s.running, s.round, s.missing = true, nil, len(a.kernel.domains)-1
	s.due = a.journal.Head().Seq + s.every
	a.tell(ctx, takeSnapshot{a.epoch})
}

// addSnapshot adds a domain's state to the round.
func (a *audit) addSnapshot(m snapshotOf) {
	s := &a.snapshots
	if m.epoch != a.epoch || s.missing == 0 {
		return // of a cancelled round
	}
	s.round = append(s.round, savedPart{m, a.journal.Head(), a.appended.tick})
	if s.missing--; s.missing > 0 {
		return
	}
	for _, part := range []snapshotOf{
		{domain: record.MetricsPart, write: a.metrics.Snapshot()},
		{domain: record.BudgetsPart, write: a.kernel.budgets.Snapshot()},
		{domain: record.KeysPart, write: a.kernel.keys.SnapshotThrough(a.journal.Head().Seq)},
	} {
		s.round = append(s.round, savedPart{part, a.journal.Head(), a.appended.tick})
	}
	a.sync() // the last entries may be of queries, which cause no sync
}

// saveSnapshots saves a complete round once its entries are on disk.
func (a *audit) saveSnapshots(ctx actor.Context) {
	s := &a.snapshots
	if !s.running || s.missing > 0 || len(s.round) == 0 || s.round[len(s.round)-1].at.Seq > a.synced {
		return
	}
	round := s.round
	s.round = nil
	self, root, log := ctx.Self(), a.kernel.root, a.log
	a.kernel.background(func() {
		begun := time.Now()
		for _, part := range round {
			if err := s.store.Save(part.domain, part.at, part.tick, part.write); err != nil {
				log.Warn("snapshots were not saved: the next start replays more of the journal", "error", err)
				break
			}
		}
		root.Send(self, snapshotsSaved{rest: snapshotRest * time.Since(begun)})
	})
}

// dropSnapshots cancels a round whose entries were lost.
func (a *audit) dropSnapshots() {
	if s := &a.snapshots; len(s.round) > 0 || s.missing > 0 {
		s.running, s.round, s.missing = false, nil, 0
		s.tellPaused()
	}
}

// snapshotsSaved allows the next round.
func (a *audit) snapshotsSaved(m snapshotsSaved) {
	a.snapshots.running = false
	a.snapshots.tellPaused()
	a.snapshots.resting = time.Now().Add(m.rest)
}

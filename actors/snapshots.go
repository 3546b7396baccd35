package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// snapshotRest bounds the cost of snapshots: the pause after a round is this many times as long as the round took.
const snapshotRest = 30

// takeSnapshot asks a domain for its state.
type takeSnapshot struct{ epoch uint64 }

// snapshotOf is that state. When the audit log handles it, it has appended exactly what the domain had applied.
type snapshotOf struct {
	domain schema.Domain
	epoch  uint64
	write  func(func([]byte) error) error
}

// snapshotsSaved ends a round.
type snapshotsSaved struct{ rest time.Duration }

// snapshotting is the audit log's part of saving snapshots: one round at a time.
type snapshotting struct {
	store   *record.Snapshots
	begun   uint64    // the entry of the states of this round
	every   uint64    // entries between two rounds: what a start after a crash must replay
	due     uint64    // the entry at which the next round may start
	resting time.Time // no round starts earlier
	running bool
	round   []savedPart
	missing int // domains that have not answered yet

	pauses  int               // of PauseSnapshots: no round starts
	pausing []chan<- struct{} // of callers that wait for the end of the round
}

type savedPart struct {
	snapshotOf
	at   journal.Head
	tick int64
}

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

// snapshot answers takeSnapshot.
func (d *domain) snapshot(ctx actor.Context, epoch uint64) {
	if d.rebuilding.held || epoch != d.epoch {
		return // a rebuild runs, and the round is cancelled
	}
	ctx.Send(d.kernel.audit, snapshotOf{d.name, epoch, d.state.Snapshot()})
}

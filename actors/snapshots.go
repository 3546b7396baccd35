package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel/budget"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/schema"
)

// Snapshots stores the state of the kernel's parts, so that a start replays only later entries. A nil *Snapshots
// stores nothing.
type Snapshots struct {
	Store Store
	Words Searcher // nil: a search reads the journal
	Log   *slog.Logger
}

// Store is what Snapshots needs of an *index.Index.
type Store interface {
	Load(ctx context.Context, name string, restore func(chunk []byte) error) (at journal.Head, tick int64, err error)
	Position(name string) uint64
	Save(ctx context.Context, name string, at journal.Head, tick int64, write func(put func(chunk []byte) error) error) error
	Ranges(ctx context.Context, f index.Filter, since uint64, most int) ([]index.Range, error)
	Before(ctx context.Context, f index.Filter, seq uint64, most int) ([]index.Range, error)
	Drop() error
}

// Searcher is the part of an *index.Index that searches.
type Searcher interface {
	Search(ctx context.Context, q index.Question) ([]index.Document, error)
	Frequency(ctx context.Context, p *schema.Phrase, most int) (int64, error)
}

// Part is something with a state: a domain, or the idempotency keys.
type Part interface {
	Snapshot() func(write func(chunk []byte) error) error
	Reset()
	Restore(chunk []byte) error
}

// Names of parts that are not domains.
const (
	KeysPart    schema.Domain = "keys"
	MetricsPart schema.Domain = "metrics"
	BudgetsPart schema.Domain = "budgets"
)

var (
	_ Part = (*idempotency.Keys)(nil)
	_ Part = (*metrics.Metrics)(nil)
	_ Part = (*budget.Ledger)(nil)
)

// Position is the last entry that a part's state includes, and the kernel's tick at it. The zero Position belongs to the
// empty state.
type Position struct {
	Seq  uint64
	Tick int64
}

// Load restores the state of a part that was saved last. If there is none, or it is not usable, the part is empty.
func (s *Snapshots) Load(ctx context.Context, name schema.Domain, p Part) (Position, error) {
	p.Reset()
	if s == nil {
		return Position{}, nil
	}
	at, tick, err := s.Store.Load(ctx, string(name), p.Restore)
	if err == nil || ctx.Err() != nil {
		return Position{at.Seq, tick}, ctx.Err()
	}
	if !errors.Is(err, index.ErrNoSnapshot) {
		s.Log.Warn("snapshot was not used: the journal is replayed instead", "part", name, "error", err)
	}
	p.Reset()
	return Position{}, nil
}

// LoadUntil is Load, but leaves the part empty if the snapshot has entries later than until.
func (s *Snapshots) LoadUntil(ctx context.Context, name schema.Domain, p Part, until uint64) (Position, error) {
	if s == nil || s.Store.Position(string(name)) > until {
		p.Reset()
		return Position{}, nil
	}
	at, err := s.Load(ctx, name, p)
	if err == nil && at.Seq > until { // it was replaced meanwhile
		p.Reset()
		at = Position{}
	}
	return at, err
}

// save writes one state, of the entries up to at, which must all be on disk.
func (s *Snapshots) save(name schema.Domain, at journal.Head, tick int64, write func(func([]byte) error) error) error {
	if err := s.Store.Save(context.Background(), string(name), at, tick, write); err != nil {
		return fmt.Errorf("save snapshot of %s: %w", name, err)
	}
	return nil
}

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
	store   *Snapshots
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
		{domain: MetricsPart, write: a.metrics.Snapshot()},
		{domain: BudgetsPart, write: a.kernel.budgets.Snapshot()},
		{domain: KeysPart, write: a.kernel.keys.SnapshotThrough(a.journal.Head().Seq)},
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
			if err := s.store.save(part.domain, part.at, part.tick, part.write); err != nil {
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

package record

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

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

// Save writes one state, of the entries up to at, which must all be on disk.
func (s *Snapshots) Save(name schema.Domain, at journal.Head, tick int64, write func(func([]byte) error) error) error {
	if err := s.Store.Save(context.Background(), string(name), at, tick, write); err != nil {
		return fmt.Errorf("save snapshot of %s: %w", name, err)
	}
	return nil
}

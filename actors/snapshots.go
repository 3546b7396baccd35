package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/store"
)

// Snapshots keeps the state of the kernel's parts in the store, so that a start replays only what came after. A nil
// *Snapshots keeps nothing.
type Snapshots struct {
	Store *store.Store
	Form  string // what a state depends on beside the journal; one of another form is not loaded
	Log   *slog.Logger
}

// Part is what has a state: a domain, or the idempotency keys.
type Part interface {
	Snapshot() func(write func(chunk []byte) error) error
	Reset()
	Restore(chunk []byte) error
}

// KeysPart is the name of the idempotency keys beside the domains'.
const KeysPart schema.Domain = "keys"

// Position is the entry up to which a part's state is made, and the kernel's tick then. The zero Position is the empty
// state's.
type Position struct {
	Seq  uint64
	Tick int64
}

// Load gives a part the state that was saved last. Where there is none, or it cannot be used, the part is empty.
func (s *Snapshots) Load(ctx context.Context, name schema.Domain, p Part) (Position, error) {
	p.Reset()
	if s == nil {
		return Position{}, nil
	}
	at, err := s.load(ctx, name, p)
	if err == nil || ctx.Err() != nil {
		return at, ctx.Err()
	}
	if !errors.Is(err, store.ErrNoSnapshot) {
		s.Log.Warn("snapshot was not used: the journal is replayed instead", "part", name, "error", err)
	}
	p.Reset()
	return Position{}, nil
}

func (s *Snapshots) load(ctx context.Context, name schema.Domain, p Part) (Position, error) {
	all, err := s.Store.Snapshots(ctx)
	if err != nil {
		return Position{}, err
	}
	for _, info := range all {
		if info.Name == s.name(name) {
			return Position{info.At.Seq, info.Tick}, s.Store.Load(ctx, info.Name, p.Restore)
		}
	}
	return Position{}, store.ErrNoSnapshot
}

// save writes one state, which is of the entries up to at: all of them must be on disk.
func (s *Snapshots) save(name schema.Domain, at journal.Head, tick int64, write func(func([]byte) error) error) error {
	if err := s.Store.Save(context.Background(), s.name(name), at, tick, write); err != nil {
		return fmt.Errorf("save snapshot of %s: %w", name, err)
	}
	return nil
}

func (s *Snapshots) name(part schema.Domain) string { return s.Form + "/" + string(part) }

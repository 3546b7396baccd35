package daemon

import (
	"context"
	"errors"
	"maps"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// replay makes every part's state of its snapshot and of the journal behind it.
func (s *state) replay(ctx context.Context) error {
	made := make(map[schema.Domain]actors.Position)
	for name, part := range s.parts() {
		at, err := s.snapshots.Load(ctx, name, part)
		if err != nil {
			return err
		}
		made[name] = at
		s.tick = max(s.tick, at.Tick)
	}
	s.made = oldest(made)
	for _, at := range made {
		if at.Seq != s.made {
			s.made = 0
		}
	}
	known, counted, entered := made[actors.KeysPart].Seq, made[actors.MetricsPart].Seq, made[actors.BudgetsPart].Seq
	err := s.read(ctx, s.domains, made, func(call *kernel.Call) {
		s.replayed++
		if call.Proof.Seq > known {
			s.keys.Recall(call)
		}
		if call.Proof.Seq > counted {
			s.metrics.Recall(call)
		}
		if call.Proof.Seq > entered {
			s.budgets.Record(call)
		}
		s.tick = max(s.tick, call.Tick)
	})
	if err != nil {
		return err
	}
	for _, d := range s.domains {
		if p, ok := d.(kernel.Publisher); ok {
			p.Publish()
		}
	}
	return nil
}

// parts is all that has a state.
func (s *state) parts() map[schema.Domain]actors.Part {
	parts := map[schema.Domain]actors.Part{actors.KeysPart: s.keys, actors.MetricsPart: s.metrics, actors.BudgetsPart: s.budgets}
	for name, d := range s.domains {
		parts[name] = d
	}
	return parts
}

// restore makes one domain's state anew.
func (s *state) restore(name schema.Domain, d kernel.Domain) error {
	at, err := s.snapshots.Load(context.Background(), name, d)
	if err != nil {
		return err
	}
	made := map[schema.Domain]actors.Position{name: at}
	return s.read(context.Background(), map[schema.Domain]kernel.Domain{name: d}, made, func(*kernel.Call) {})
}

// read replays the journal from where the oldest of the states ends.
func (s *state) read(ctx context.Context, domains map[schema.Domain]kernel.Domain, made map[schema.Domain]actors.Position, seen func(*kernel.Call)) error {
	reader := journal.NewReader(nil, s.dir, journal.ReaderOptions{From: oldest(made) + 1, Limit: s.journal.Written})
	return errors.Join(actors.Replay(ctx, reader, domains, made, seen), reader.Close())
}

// oldest is the entry that all states are made of at least.
func oldest(made map[schema.Domain]actors.Position) uint64 {
	first := ^uint64(0)
	for at := range maps.Values(made) {
		first = min(first, at.Seq)
	}
	return first
}

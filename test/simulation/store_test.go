package simulation_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/record"
)

// projections is an index.Index in memory with the same guarantees: a snapshot is saved completely or not at all, and a power cut
// restores the state after an earlier commit.
type projections struct {
	mu     sync.Mutex
	states []snapshots // the states after the last commits, the current one last
	full   bool        // nothing can be saved
	broken string      // name of a snapshot that is damaged; "": none
}

type snapshots map[string]snapshot

type snapshot struct {
	at     journal.Head
	tick   int64
	chunks [][]byte
}

var _ record.Store = (*projections)(nil)

func newProjections() *projections { return &projections{states: []snapshots{{}}} }

func (p *projections) now() snapshots { return p.states[len(p.states)-1] }

// crash returns the store after a power cut.
func (p *projections) crash(r *rand.Rand, how faultfs.Outcome) *projections {
	p.mu.Lock()
	defer p.mu.Unlock()
	if how == faultfs.KeepAll {
		return &projections{states: []snapshots{p.now()}}
	}
	return &projections{states: []snapshots{p.states[r.IntN(len(p.states))]}}
}

// commit applies change to a copy of the state.
func (p *projections) commit(change func(snapshots)) {
	next := maps.Clone(p.now())
	change(next)
	p.states = append(p.states, next)
	const most = 12 // one and a half rounds of snapshots
	p.states = p.states[max(0, len(p.states)-most):]
}

// dropForeign drops the snapshots of entries that are not in the journal, as index.Load does.
func (p *projections) dropForeign(holds func(journal.Head) (bool, error)) error {
	for _, name := range slices.Sorted(maps.Keys(p.now())) {
		at := p.now()[name].at
		held, err := holds(at)
		if err != nil {
			return fmt.Errorf("look for entry %d of snapshot %s: %w", at.Seq, name, err)
		}
		if !held {
			p.commit(func(s snapshots) { delete(s, name) })
		}
	}
	return nil
}

// Load implements record.Store.
func (p *projections) Load(_ context.Context, name string, restore func(chunk []byte) error) (at journal.Head, tick int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.now()[name]
	if !ok {
		return at, 0, index.ErrNoSnapshot
	}
	for i, chunk := range s.chunks {
		if name == p.broken && i >= len(s.chunks)/2 {
			return at, 0, index.ErrDamaged
		}
		if err := restore(bytes.Clone(chunk)); err != nil {
			return at, 0, err
		}
	}
	return s.at, s.tick, nil
}

// Position implements record.Store.
func (p *projections) Position(name string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now()[name].at.Seq
}

// Save implements record.Store.
func (p *projections) Save(_ context.Context, name string, at journal.Head, tick int64, write func(put func(chunk []byte) error) error) error {
	s := snapshot{at: at, tick: tick}
	err := write(func(chunk []byte) error {
		s.chunks = append(s.chunks, bytes.Clone(chunk))
		return nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.full {
		err = syscall.ENOSPC
	}
	if err != nil {
		return err
	}
	p.commit(func(all snapshots) { all[name] = s })
	return nil
}

// Before implements record.Store. It has no index: any entry may match.
func (p *projections) Before(_ context.Context, _ index.Filter, seq uint64, _ int) ([]index.Range, error) {
	return []index.Range{{First: 1, Last: seq}}, nil
}

func (p *projections) Ranges(_ context.Context, _ index.Filter, from uint64, _ int) ([]index.Range, error) {
	return []index.Range{{First: from, Last: index.OpenEnd}}, nil
}

// Drop implements record.Store.
func (p *projections) Drop() error { return nil }

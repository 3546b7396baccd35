package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// snapshotEvery is the number of entries between two snapshots.
const snapshotEvery = 30

// parts returns every part of the kernel that has a state.
func (s *state) parts() map[schema.Domain]record.Part {
	parts := map[schema.Domain]record.Part{record.KeysPart: s.keys, record.MetricsPart: s.metrics, record.BudgetsPart: s.budgets}
	for name, d := range s.domains {
		parts[name] = d
	}
	return parts
}

// replay restores the states from snapshots, if from is not nil, and from the journal's entries after them, up to the entry limit.
func (s *state) replay(disk journal.FS, from *record.Snapshots, limit uint64) error {
	made := make(map[schema.Domain]record.Position)
	least, most := uint64(math.MaxUint64), uint64(0)
	for name, part := range s.parts() {
		at, err := from.Load(context.Background(), name, part)
		if err != nil {
			return err
		}
		made[name], s.tick = at, max(s.tick, at.Tick)
		least, most = min(least, at.Seq), max(most, at.Seq)
	}
	if least == most {
		s.made = least
	}
	err := read(disk, s.domains, made, limit, func(call *kernel.Call) {
		if call.Proof.Seq > made[record.KeysPart].Seq {
			s.keys.Recall(call)
		}
		if call.Proof.Seq > made[record.MetricsPart].Seq {
			s.metrics.Recall(call)
		}
		if call.Proof.Seq > made[record.BudgetsPart].Seq {
			s.budgets.Record(call)
		}
		s.tick = max(s.tick, call.Tick)
	})
	for _, d := range s.domains {
		if p, ok := d.(kernel.Publisher); ok {
			p.Publish()
		}
	}
	return err
}

// read replays the journal from the position of the oldest state.
func read(disk journal.FS, domains map[schema.Domain]kernel.Domain, made map[schema.Domain]record.Position, limit uint64, seen func(*kernel.Call)) error {
	first := slices.MinFunc(slices.Collect(maps.Values(made)), func(a, b record.Position) int { return int(a.Seq) - int(b.Seq) })
	r := journal.NewReader(disk, journalDir, journal.ReaderOptions{From: first.Seq + 1, Limit: func() uint64 { return limit }})
	return errors.Join(record.Replay(context.Background(), r, domains, made, seen), r.Close())
}

// replayed returns the state that the journal alone gives.
func (w *world) replayed(limit uint64) (*state, error) {
	s, err := newState()
	if err == nil {
		err = s.replay(w.disk, nil, limit)
	}
	return s, err
}

// restoreState restores the state from snapshots and the journal, and checks that the journal alone gives the same state.
func (w *world) restoreState(head uint64) (err error) {
	w.store.full, w.store.broken = false, ""
	if err := w.store.dropForeign(func(at journal.Head) (bool, error) {
		return index.InJournal(w.disk, journalDir, w.journal.Synced, at)
	}); err != nil {
		return err
	}
	if kept := slices.Sorted(maps.Keys(w.store.now())); len(kept) > 0 && w.r.IntN(6) == 0 {
		w.store.broken = kept[w.r.IntN(len(kept))]
	}
	w.snapshots = &record.Snapshots{Store: w.store, Log: w.logger()}
	if w.state, err = newState(); err != nil {
		return err
	}
	if err := w.state.replay(w.disk, w.snapshots, head); err != nil {
		return err
	}
	alone, err := w.replayed(head)
	if err != nil {
		return err
	}
	if w.state.tick != alone.tick {
		return fmt.Errorf("it is tick %d after a start, and %d without snapshots", w.state.tick, alone.tick)
	}
	return same(w.state.parts(), alone.parts())
}

// same returns an error with the first part in which two states differ.
func same[P record.Part](live, again map[schema.Domain]P) error {
	for _, name := range slices.Sorted(maps.Keys(live)) {
		if l, a := picture(live[name]), picture(again[name]); l != a {
			return fmt.Errorf("%s: the state is\n%s, and that of the journal alone\n%s", name, l, a)
		}
	}
	return nil
}

// picture returns a state as text. Chunks of metrics are sorted, and zero counts are removed, since lost entries are subtracted.
func picture(d record.Part) string {
	var chunks []string
	_ = d.Snapshot()(func(chunk []byte) error {
		chunks = append(chunks, fmt.Sprintf("%q\n", chunk))
		return nil
	})
	if _, ok := d.(*metrics.Metrics); ok {
		chunks = slices.DeleteFunc(chunks, func(c string) bool { return strings.HasSuffix(c, `\x00\x00"`+"\n") })
		slices.Sort(chunks)
	}
	return strings.Join(chunks, "")
}

// restore restores the state of a domain while the kernel runs.
func (w *world) restore(name schema.Domain, d kernel.Domain) error {
	at, err := w.snapshots.Load(context.Background(), name, d)
	if err != nil {
		return err
	}
	return read(w.files, map[schema.Domain]kernel.Domain{name: d}, map[schema.Domain]record.Position{name: at}, w.journal.Written(), func(*kernel.Call) {})
}

func (w *world) newKernel() *actors.Kernel {
	k := actors.New(actors.Config{
		Manual: true, Poller: idlePoller{}, Journal: w.journal, Dir: journalDir, FS: w.files, Log: w.logger(),
		Domains: w.state.domains, Tokens: w.state.tokens, Processes: w.state.procs.Processes(), Keys: w.state.keys, Tick: w.state.tick,
		Snapshots: w.snapshots, SnapshotEvery: snapshotEvery, Made: w.state.made, Metrics: w.state.metrics, Budgets: w.state.budgets,
		Blobs: w.blobs, Runners: map[string]kernel.Runner{"Http.Fetch": w.effects.run},
		Origin: "https://test.local/", Restore: w.restore, Bounds: bounds, Gate: kernel.Gate{Policy: guard(w.state.procs.Processes()), Approval: w.state.approvals.Stage},
	})
	serveApprovals(w.state, k)
	return k
}

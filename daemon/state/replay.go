package state

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// replay rebuilds the state of every part from its snapshot and the entries after it.
func (s *State) replay(ctx context.Context) error {
	made, err := s.load(ctx, s.parts(), math.MaxUint64)
	if err != nil {
		return err
	}
	s.Made = oldest(made)
	for _, at := range made {
		if at.Seq != s.Made {
			s.Made = 0
		}
	}
	return s.advance(ctx, made, s.Journal.Written)
}

// advance replays the journal from the positions of the parts' states, up to a limit.
func (s *State) advance(ctx context.Context, made map[schema.Domain]record.Position, limit func() uint64) error {
	for _, at := range made {
		s.Tick = max(s.Tick, at.Tick)
	}
	known, counted, entered := made[record.KeysPart].Seq, made[record.MetricsPart].Seq, made[record.BudgetsPart].Seq
	err := s.read(ctx, s.Domains, made, limit, func(call *kernel.Call) {
		s.Replayed++
		if call.Proof.Seq > known {
			s.Keys.Recall(call)
		}
		if call.Proof.Seq > counted {
			s.Metrics.Recall(call)
		}
		if call.Proof.Seq > entered {
			s.Budgets.Record(call)
		}
		s.Tick = max(s.Tick, call.Tick)
	})
	if err != nil {
		return err
	}
	for _, d := range s.Domains {
		if p, ok := d.(kernel.Publisher); ok {
			p.Publish()
		}
	}
	return nil
}

// parts returns all parts that have a state.
func (s *State) parts() map[schema.Domain]record.Part {
	parts := map[schema.Domain]record.Part{record.KeysPart: s.Keys, record.MetricsPart: s.Metrics, record.BudgetsPart: s.Budgets}
	for name, d := range s.Domains {
		parts[name] = d
	}
	return parts
}

// Restore rebuilds one domain's state.
func (s *State) Restore(name schema.Domain, d kernel.Domain) error {
	made, err := s.load(context.Background(), map[schema.Domain]record.Part{name: d}, math.MaxUint64)
	if err != nil {
		return err
	}
	return s.read(context.Background(), map[schema.Domain]kernel.Domain{name: d}, made, s.Journal.Written, func(*kernel.Call) {})
}

// load restores the parts' states from their snapshots up to an entry, or from the anchor if a snapshot is older than the
// archived entries.
func (s *State) load(ctx context.Context, parts map[schema.Domain]record.Part, until uint64) (map[schema.Domain]record.Position, error) {
	made := make(map[schema.Domain]record.Position, len(parts))
	anchor, err := journal.ReadAnchor(nil, s.Dir) // a running kernel may archive more
	if err != nil {
		return nil, err
	}
	if anchor != nil && anchor.Seq > until {
		return nil, &journal.ArchivedError{Seq: until, Anchor: anchor}
	}
	older := make(map[schema.Domain]record.Part)
	for name, part := range parts {
		if made[name], err = s.Snapshots.LoadUntil(ctx, name, part, until); err != nil {
			return nil, err
		}
		if anchor != nil && made[name].Seq < anchor.Seq {
			older[name] = part
			made[name] = record.Position{Seq: anchor.Seq, Tick: anchor.Tick}
		}
	}
	if len(older) == 0 {
		return made, nil
	}
	return made, LoadAnchor(ctx, s.Dir, anchor, older)
}

// LoadAnchor restores the parts' states from an anchor of the journal in dir.
func LoadAnchor(ctx context.Context, dir string, anchor *journal.Anchor, parts map[schema.Domain]record.Part) error {
	if anchor.Form != anchorForm {
		return fault.StateForm.New("the anchor of %s has a state of form %s, and this kernel reads form %s: start the version that wrote it, "+
			"or move the archived segments in %s back and remove the anchor", dir, anchor.Form, anchorForm, anchor.Archive)
	}
	for _, part := range parts {
		part.Reset()
	}
	return anchor.LoadState(ctx, nil, dir, func(name string, chunk []byte) error {
		if part := parts[schema.Domain(name)]; part != nil {
			if err := part.Restore(chunk); err != nil {
				return fmt.Errorf("restore %s of the anchor: %w", name, err)
			}
		}
		return nil
	})
}

// read replays the journal from the end of the oldest state, up to a limit.
func (s *State) read(ctx context.Context, domains map[schema.Domain]kernel.Domain, made map[schema.Domain]record.Position, limit func() uint64, seen func(*kernel.Call)) error {
	reader := journal.NewReader(nil, s.Dir, journal.ReaderOptions{From: oldest(made) + 1, Limit: limit})
	return errors.Join(record.Replay(ctx, reader, domains, made, seen), reader.Close())
}

// oldest returns the last entry that all states include.
func oldest(made map[schema.Domain]record.Position) uint64 {
	first := ^uint64(0)
	for at := range maps.Values(made) {
		first = min(first, at.Seq)
	}
	return first
}

// anchorForm is the format of an anchor's state. Only the archive can rebuild that state, so a later version must be able
// to read this one.
var anchorForm = strconv.Itoa(snapshotFormat)

// snapshotFormat must change with the format of any part's snapshot, so that a kernel does not read a snapshot of another
// version.
const snapshotFormat = 5

// projections is the index of the journal, with the goroutine that updates it.
type projections struct {
	index  *index.Index
	cancel context.CancelFunc
	follow sync.WaitGroup
}

// openProjections opens the index. The kernel works without it: then a start replays the whole journal, and a query to the
// audit log reads it.
func (s *State) openProjections(cfg *config.Config) {
	trouble := func(err error) { s.log.Warn("projections of the journal", "error", err) }
	dir := filepath.Join(cfg.StateDir, "projections")
	for _, suffix := range []string{"-wal", "-shm", ""} { // of an older kernel, which had one file
		_ = os.Remove(dir + ".db" + suffix)
	}
	x, err := index.Open(dir, index.Options{
		Dir: s.Dir, Synced: s.Journal.Synced, Await: s.Journal.AwaitSynced, Form: snapshotForm(cfg), Trouble: trouble,
		Name: s.nameOf,
	})
	if err != nil {
		s.log.Warn("no projections: starts and queries to the audit log read the whole journal", "error", err)
		return
	}
	s.projections = &projections{index: x, cancel: func() {}}
	s.Snapshots = &record.Snapshots{Store: x, Words: x, Log: s.log}
}

// followJournal makes the index follow the journal, when the names of processes are known.
func (s *State) followJournal() {
	p := s.projections
	if p == nil {
		return
	}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	p.follow.Go(func() {
		if err := p.index.Follow(ctx); err != nil {
			s.log.Warn("projections of the journal", "error", err)
		}
	})
}

// nameOf returns the name of a process, or "".
func (s *State) nameOf(pid int64) string {
	if p := s.Processes.Processes().Process(pid); p != nil {
		return p.AgentID
	}
	return ""
}

// snapshotForm returns what a snapshot depends on besides the journal: its format, and the configured pools.
func snapshotForm(cfg *config.Config) string {
	sum := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(cfg.Resources)) {
		fmt.Fprintf(sum, "%q=%v\n", name, cfg.Resources[name])
	}
	return fmt.Sprintf("%d-%016x", snapshotFormat, sum.Sum64())
}

// close ends the follower and closes the index.
func (p *projections) close() error {
	if p == nil {
		return nil
	}
	p.cancel()
	p.follow.Wait()
	return p.index.Close()
}

package actors

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/schema"
)

// audit is the actor that appends to the audit log, the journal; the domain schema.Audit answers questions about it. Every
// finished batch comes by here, several in one message: their calls are appended
// to the journal, and their answers are released once that which they reveal cannot be lost any more.
//
// A batch with a command waits until it is on disk. One of queries waits until it is written, and until the commands
// that it may have seen are on disk: those of its own domain, and those of the registries and approvals that every domain looks at.
// All that is appended while an fsync runs shares the next one.
type audit struct {
	kernel *Kernel
	log    *slog.Logger
	record recorder

	journal *journal.Log
	epoch   uint64
	stopped bool // a sync has failed: nothing is appended any more

	fresh     []*batch      // appended, not written yet
	urgent    bool          // and all of them may use the journal's reserve
	held      []hold        // written, not released yet
	scheduled bool          // a flush is on its way
	syncing   bool          // so is a sync
	rotating  bool          // which begins the next segment: nothing is written until it is there
	resync    bool          // and another has to follow
	delayed   bool          // one will be, a moment later
	noSooner  time.Time     // than this does the next begin: the last one took long
	syncEvery time.Duration // not 0: answers do not wait for the disk, which follows that soon
	synced    uint64
	commands  map[schema.Domain]uint64 // seq of the last command of each domain
	signing   atomic.Bool              // a checkpoint
	metrics   *metrics.Metrics
	tick      int64  // of the last entry
	moved     uint64 // the entry that was the first of that tick
	snapshots snapshotting
	owed      []*step // lost, and to be made again once the journal can be written

	rebuilding map[schema.Domain]bool // registries that have yet to make their state anew
}

func newAudit(k *Kernel, log *journal.Log) *audit {
	return &audit{
		kernel: k, log: k.log.With("domain", "audit"), journal: log,
		synced: log.Synced(), commands: make(map[schema.Domain]uint64), metrics: k.metrics,
	}
}

// hold is a batch whose answers wait until seq is on disk.
type hold struct {
	batch *batch
	seq   uint64
}

// flush has what was appended in a turn written together.
type flush struct{}

// syncNow has what was written synced.
type syncNow struct{}

// durable is the report of a sync: through is on disk.
type durable struct {
	through uint64
	took    time.Duration
	err     error
}

// After a sync that took longSync, the next one begins a little later, by a gatherPart of that time and maxGather at most: those who
// were answered share it with their next calls, else half of them would always wait for the other half.
const (
	longSync   = 2 * time.Millisecond
	gatherPart = 16
	maxGather  = time.Millisecond
)

// Receive handles what domains and the loop send.
func (a *audit) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *batch:
		a.append(ctx, m)
	case look:
		a.flush(ctx)
		m.seen <- seen{a.journal.Head().Seq, a.kernel.keys.Unended()}
	case flush:
		a.scheduled = false
		a.flush(ctx)
	case owe:
		a.owed = append(a.owed, m.step)
	case durable:
		a.durable(ctx, m)
	case syncNow:
		a.delayed = false
		a.sync()
	case snapshotOf:
		a.addSnapshot(m)
		a.saveSnapshots(ctx)
	case snapshotsSaved:
		a.snapshotsSaved(m)
	case rebuilt:
		if m.epoch == a.epoch {
			a.rebuilt(ctx, m.domain)
		}
	case restoreFailed:
		if m.epoch == a.epoch && a.rebuilding[m.domain] {
			a.tell(ctx, stalled{a.epoch})
		}
	case *actor.Terminated:
		for name := range a.rebuilding {
			if a.kernel.domains[name] == m.Who {
				a.rebuilt(ctx, name)
			}
		}
	}
}

// append puts the calls of b into the journal's buffer.
func (a *audit) append(ctx actor.Context, b *batch) {
	urgent := b.urgent()
	if len(a.fresh) > 0 && a.urgent != urgent {
		a.flush(ctx) // what may not use the reserve does not; what may is refused only where it saw what that loses
	}
	if a.stopped || b.epoch != a.epoch {
		a.refuse(ctx, b) // the latter was decided on a state that has been thrown away
		return
	}
	for i := range b.calls {
		if b.unrecorded() {
			break
		}
		call := &b.calls[i]
		if call.Throttled {
			continue
		}
		a.metrics.Count(call, 1)
		var repeats uint64
		if call.Repeated {
			repeats = a.kernel.keys.Seq(call)
		}
		entry := a.record.entry(call, repeats)
		seq := a.journal.Append(entry)
		b.account.wrote(entryFrame + len(entry.Request) + len(entry.Outcome))
		if !call.Repeated {
			a.kernel.keys.Number(call, seq)
		}
		if end, ok := call.Input.(*schema.EffectEnd); ok {
			a.kernel.keys.End(call, end, seq)
		} else if b.intends() {
			a.kernel.keys.Intend(call, seq)
		}
		if call.Tick > a.tick {
			a.tick, a.moved = call.Tick, seq
		}
		call.Proof = schema.Proof{Seq: seq, PID: call.PID, Tick: call.Tick, LatencyUS: call.Proof.LatencyUS}
		a.kernel.budgets.Record(call)
	}
	a.urgent = urgent && (a.urgent || len(a.fresh) == 0)
	a.fresh = append(a.fresh, b)
	if !a.scheduled {
		a.scheduled = true
		a.kernel.loop.atRest(ctx.Self(), flush{})
	}
}

// entryFrame is about what an entry takes beside request and outcome.
const entryFrame = 256

// flush writes what was appended, and releases what need not wait for the disk.
func (a *audit) flush(ctx actor.Context) {
	if len(a.fresh) == 0 || a.rotating {
		return
	}
	if !a.syncing && a.journal.RotateDue() {
		a.syncing, a.rotating = true, true
		a.syncAtRest(a.journal.Rotate)
		return
	}
	write := a.journal.Flush
	if a.urgent {
		write = a.journal.FlushFromReserve
	}
	if err := write(); err != nil {
		a.failed(ctx, err)
		return
	}
	if a.kernel.budgets.Keep() {
		ctx.Send(a.kernel.agents, retimed{})
	}
	// An urgent entry says nothing of room for others.
	entries := slices.ContainsFunc(a.fresh, func(b *batch) bool { return !b.unrecorded() && !b.throttled() })
	recorded := entries && !a.urgent
	if recorded {
		a.settle(ctx)
	}
	if recorded && a.kernel.refusing.CompareAndSwap(true, false) {
		a.kernel.spent.Store(false)
		a.kernel.probes.over()
		a.kernel.refusal.Store(nil)
		a.log.Info("journal can be written again: commands are accepted")
	}
	for _, b := range a.fresh {
		a.hold(b)
	}
	a.fresh = a.fresh[:0]
	a.release(ctx)
	if entries {
		a.notify(ctx)
	}
	a.beginSnapshots(ctx)
}

// notify has the questions about what comes next asked again, once for as many entries as there are by then.
func (a *audit) notify(ctx actor.Context) {
	if a.kernel.followed.Swap(false) && a.kernel.life.Err() == nil {
		ctx.Send(a.kernel.domains[schema.Audit], wakeUp{})
	}
}

// hold notes what b has to wait for.
func (a *audit) hold(b *batch) {
	var last uint64
	for i := range b.calls {
		if b.calls[i].Throttled {
			continue
		}
		last = b.calls[i].Proof.Seq
		if b.calls[i].Syscall.Kind == schema.KindCommand {
			a.commands[b.domain] = last
		}
	}
	if b.unrecorded() {
		last = a.journal.Head().Seq
	}
	a.held = append(a.held, hold{batch: b, seq: min(a.reveals(b), last)})
}

// reveals is the last entry whose effect b may have seen, where answers wait for the disk.
func (a *audit) reveals(b *batch) uint64 {
	if a.syncEvery > 0 {
		return 0
	}
	return max(a.commands[b.domain], a.commands[schema.Capability], a.commands[schema.Process], a.commands[schema.Approval], a.moved)
}

// release sends back every batch that waits for nothing any more, and has the rest synced.
func (a *audit) release(ctx actor.Context) {
	kept := a.held[:0]
	for _, h := range a.held {
		if h.seq > a.synced {
			kept = append(kept, h)
		} else {
			h.batch.sender.answer(ctx, a)
		}
	}
	clear(a.held[len(kept):])
	a.held = kept
	switch {
	case len(kept) > 0, a.journal.CheckpointWaits(): // queries alone are vouched for as well
		a.sync()
	case a.syncEvery > 0 && a.journal.Written() > a.synced:
		a.syncIn(a.syncEvery)
	}
}

// sync has what was written made durable, at the end of the turn. Where that is under way already, another one follows.
func (a *audit) sync() {
	if a.resync = a.syncing; a.syncing {
		return
	}
	if early := time.Until(a.noSooner); early > 0 {
		a.syncIn(early)
		return
	}
	a.syncing = true
	a.syncAtRest(a.journal.Sync)
}

// syncIn has that done after some time.
func (a *audit) syncIn(d time.Duration) {
	if !a.delayed {
		a.delayed = true
		time.AfterFunc(d, func() { a.kernel.root.Send(a.kernel.audit, syncNow{}) })
	}
}

// syncAtRest has something synced at the end of the turn, which reports what has come of it, on the goroutine of that.
func (a *audit) syncAtRest(sync func() (through uint64, err error)) {
	a.kernel.loop.syncAtRest(func() {
		begun := time.Now()
		through, err := sync()
		a.kernel.root.Send(a.kernel.audit, durable{through, time.Since(begun), err})
	})
}

// durable takes the report of a sync. After a failed one it is unknown what is on disk: the kernel stops.
func (a *audit) durable(ctx actor.Context, m durable) {
	rotated := a.rotating
	a.syncing, a.rotating = false, false
	a.synced = max(a.synced, m.through)
	if m.err != nil {
		a.stop(ctx, m.err)
		return
	}
	if m.took >= longSync {
		a.noSooner = time.Now().Add(min(m.took/gatherPart, maxGather))
	}
	if rotated {
		a.flush(ctx)
	}
	a.release(ctx)
	a.saveSnapshots(ctx)
	if a.resync {
		a.sync()
	}
	a.checkpoint()
}

// checkpoint has one signed where that is due, on a goroutine: nobody's answer waits for a signature.
func (a *audit) checkpoint() {
	if a.journal.CheckpointDue() && a.signing.CompareAndSwap(false, true) {
		a.kernel.background(func() {
			defer a.signing.Store(false)
			for a.journal.CheckpointDue() {
				// journal.Options.Trouble is told of what goes wrong here, and a stopped log tells the next sync.
				_ = a.journal.Checkpoint()
			}
		})
	}
}

package actors

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
)

// audit is the actor that appends to the journal; the domain schema.Audit answers queries about it. It appends the calls of
// every finished batch, and releases their answers when nothing that they reveal can be lost.
//
// A batch with a command waits until it is on disk. A batch of queries waits until it is written, and until the commands
// that it may have seen are on disk: those of its own domain, and of the registries and approvals that every domain reads.
// All entries that are appended during an fsync share the next one (group commit).
type audit struct {
	kernel  *Kernel
	log     *slog.Logger
	encoder record.Encoder

	journal *journal.Log
	epoch   uint64
	stopped bool // a sync has failed: nothing is appended any more

	fresh      []*batch      // appended, not written yet
	urgent     bool          // fresh may use the journal's reserve
	unreleased []unreleased  // written, not released yet
	scheduled  bool          // a flush is scheduled
	syncing    bool          // a sync runs
	rotating   bool          // the sync starts the next segment: nothing is written until that exists
	resync     bool          // another sync must follow
	delayed    bool          // a timer will start a sync
	noSooner   time.Time     // earliest time of the next sync, after a long one
	syncEvery  time.Duration // not 0: answers do not wait for the disk, which is synced this much later
	synced     uint64
	commands   map[schema.Domain]uint64 // seq of the last command of each domain
	signing    atomic.Bool              // a checkpoint is being signed
	metrics    *metrics.Metrics
	appended   moment // at the last entry
	written    moment // at the last entry that was written
	snapshots  snapshotting
	retries    []*step        // steps to be retried when the journal can be written
	endings    []chan<- error // of callers that wait for the end of the segment
	quorum     *quorumState   // nil: answers wait only for the kernel's own disk

	rebuilding map[schema.Domain]bool // registries that have not rebuilt their state yet
}

func newAudit(k *Kernel, log *journal.Log) *audit {
	return &audit{
		kernel: k, log: k.log.With("domain", "audit"), journal: log,
		synced: log.Synced(), commands: make(map[schema.Domain]uint64), metrics: k.metrics,
	}
}

// moment is a tick, and the seq of the first entry with it.
type moment struct {
	tick int64
	seq  uint64
}

// unreleased is a batch whose answers wait until seq is on disk, and a majority of other disks has all.
type unreleased struct {
	batch *batch
	seq   uint64
	all   uint64    // 0 without a quorum
	since time.Time // zero without a quorum
}

// flush requests a write of everything that was appended in a turn.
type flush struct{}

// syncNow requests a sync of what was written.
type syncNow struct{}

// durable reports a sync: entries up to through are on disk.
type durable struct {
	through uint64
	took    time.Duration
	err     error
}

// After a sync that took at least longSync, the next one starts later, by a spacingPart of that time and by maxSpacing at
// most. So clients that were just answered share it with their next calls; otherwise one half of the clients would always
// wait for the other.
const (
	longSync    = 2 * time.Millisecond
	spacingPart = 16
	maxSpacing  = time.Millisecond
)

// Receive handles messages of domains and of the loop.
func (a *audit) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *batch:
		a.append(ctx, m)
	case look:
		a.flush(ctx)
		m.answer <- record.Extent{Head: a.journal.Head().Seq, Unended: a.kernel.keys.Unended()}
	case flush:
		a.scheduled = false
		a.flush(ctx)
	case endSegment:
		a.flush(ctx)
		a.endings = append(a.endings, m.ended)
		a.endSegment()
	case retryStep:
		a.retries = append(a.retries, m.step)
	case durable:
		a.durable(ctx, m)
	case acknowledged:
		a.acknowledged(ctx, m.through)
	case quorumTick:
		a.quorumTick(ctx)
	case leads:
		a.lead(ctx, m.held)
	case fenced:
		a.fenced(ctx, m.err)
	case syncNow:
		a.delayed = false
		a.sync()
	case snapshotOf:
		a.addSnapshot(m)
		a.saveSnapshots(ctx)
	case snapshotsSaved:
		a.snapshotsSaved(m)
	case pauseSnapshots:
		a.pauseSnapshots(m)
	case resumeSnapshots:
		a.snapshots.pauses--
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
		a.flush(ctx) // ordinary entries must not use the reserve, and an urgent entry is lost only with one that it depends on
	}
	if a.stopped || b.epoch != a.epoch {
		a.refuse(ctx, b) // b.epoch != a.epoch: it was decided on a state that was discarded
		return
	}
	for i := range b.calls {
		if b.sender.unrecorded() {
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
		entry := a.encoder.Entry(call, repeats)
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
		if call.Tick > a.appended.tick {
			a.appended = moment{call.Tick, seq}
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

// entryFrame is about the size of an entry without request and outcome, in bytes.
const entryFrame = 256

// flush writes what was appended, and releases the batches that do not wait for the disk.
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
	a.written = a.appended
	if a.kernel.budgets.Keep() {
		ctx.Send(a.kernel.agents, retimed{})
	}
	// An urgent entry does not show that there is room for others.
	entries := slices.ContainsFunc(a.fresh, func(b *batch) bool { return !b.sender.unrecorded() && !b.throttled() })
	recorded := entries && !a.urgent
	if recorded {
		a.retrySteps(ctx)
	}
	if recorded && a.kernel.refusing.CompareAndSwap(true, false) {
		a.kernel.spent.Store(false)
		a.kernel.probes.over()
		a.kernel.refusal.Store(nil)
		a.log.Info("journal can be written again: commands are accepted")
	}
	for _, b := range a.fresh {
		a.awaitDisk(b)
	}
	a.fresh = a.fresh[:0]
	a.release(ctx)
	if entries {
		a.notify(ctx)
	}
	a.beginSnapshots(ctx)
}

// notify wakes queries that wait for the next entry, once for all entries until then.
func (a *audit) notify(ctx actor.Context) {
	if a.kernel.followed.Swap(false) && a.kernel.life.Err() == nil {
		ctx.Send(a.kernel.domains[schema.Audit], wakeUp{})
	}
}

// awaitDisk keeps b until the entries that it reveals are on disk.
func (a *audit) awaitDisk(b *batch) {
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
	if b.sender.unrecorded() {
		last = a.journal.Head().Seq
	}
	a.hold(b, last)
}

// hold keeps b until everything that it reveals, up to the entry last, is durable.
func (a *audit) hold(b *batch, last uint64) {
	h := unreleased{batch: b, seq: min(a.reveals(b), last)}
	if a.quorum != nil {
		h.all, h.since = a.revealsToAll(b, last), time.Now()
		h.seq = max(h.seq, h.all)
	}
	a.unreleased = append(a.unreleased, h)
}

// reveals returns the last entry whose effect b may have seen, if answers wait for the disk.
func (a *audit) reveals(b *batch) uint64 {
	if a.syncEvery > 0 {
		return 0
	}
	return max(a.commands[b.domain], a.commands[schema.Capability], a.commands[schema.Process], a.commands[schema.Approval], a.appended.seq)
}

// release sends back every batch whose entries are durable, and starts a sync for those whose entries are not on disk.
func (a *audit) release(ctx actor.Context) {
	kept, unsynced := a.unreleased[:0], false
	for _, h := range a.unreleased {
		if !a.mayLeave(&h) {
			kept, unsynced = append(kept, h), unsynced || h.seq > a.synced
		} else {
			h.batch.sender.answer(ctx, a.kernel)
		}
	}
	clear(a.unreleased[len(kept):])
	a.unreleased = kept
	a.watchQuorum()
	switch {
	case unsynced, a.journal.CheckpointWaits(): // checkpoints cover entries of queries too
		a.sync()
	case a.syncEvery > 0 && a.journal.Written() > a.synced:
		a.syncIn(a.syncEvery)
	}
}

// sync starts a sync at the end of the turn, or after the one that runs.
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

// syncIn starts a sync after some time.
func (a *audit) syncIn(d time.Duration) {
	if !a.delayed {
		a.delayed = true
		time.AfterFunc(d, func() { a.kernel.root.Send(a.kernel.audit, syncNow{}) })
	}
}

// syncAtRest runs sync at the end of the turn, which reports to this actor.
func (a *audit) syncAtRest(sync func() (through uint64, err error)) {
	a.kernel.loop.syncAtRest(func() {
		begun := time.Now()
		through, err := sync()
		a.kernel.root.Send(a.kernel.audit, durable{through, time.Since(begun), err})
	})
}

// durable handles the report of a sync. After a failed one it is unknown what is on disk, so the kernel stops.
func (a *audit) durable(ctx actor.Context, m durable) {
	rotated := a.rotating
	a.syncing, a.rotating = false, false
	a.synced = max(a.synced, m.through)
	if m.err != nil {
		a.stop(ctx, m.err)
		a.endSegment()
		return
	}
	a.endSegment()
	if m.took >= longSync {
		a.noSooner = time.Now().Add(min(m.took/spacingPart, maxSpacing))
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

// checkpoint signs a checkpoint on a goroutine if one is due: no answer waits for a signature.
func (a *audit) checkpoint() {
	if a.journal.CheckpointDue() && a.signing.CompareAndSwap(false, true) {
		a.kernel.background(func() {
			defer a.signing.Store(false)
			for a.journal.CheckpointDue() {
				// Its errors reach journal.Options.Trouble, and a stopped log fails the next sync.
				_ = a.journal.Checkpoint()
			}
		})
	}
}

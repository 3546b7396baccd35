package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
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
		a.kernel.retries.Reset()
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

package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Lead reports whether no other kernel can lead in place of this one. If one can, programs are ended and commands refused.
// It may be called until Close.
func (k *Kernel) Lead(held bool) { k.root.Send(k.audit, leads{held}) }

// lead handles a change of Quorum.Leads.
func (a *audit) lead(ctx actor.Context, held bool) {
	q := a.quorum
	if q == nil || a.stopped {
		return
	}
	a.kernel.unled.Store(!held)
	switch {
	case !held && !q.lost:
		q.lost, q.away = true, true
		a.kernel.away.Store(true)
		a.log.Error("another host may lead this kernel: commands are refused, and programs are ended")
		ctx.Send(a.kernel.agents, expired{q.step()})
	case held && q.lost:
		q.lost = false
		a.log.Info("no other host leads this kernel: commands are accepted once the bus acknowledges entries")
		a.present()
	}
	a.release(ctx)
}

// present accepts commands again if a majority has all entries.
func (a *audit) present() {
	q := a.quorum
	if q.away && !q.lost && q.Acknowledged >= a.lastCommand() {
		q.away = false
		a.kernel.away.Store(false)
		a.log.Info("the bus acknowledges entries again: commands are accepted")
	}
}

// Acknowledge reports that a majority of the other disks has all entries up to through. It may be called until Close.
func (k *Kernel) Acknowledge(through uint64) { k.root.Send(k.audit, acknowledged{through}) }

// Fence ends the kernel, because another one writes its stream. Calls without an acknowledgment are not answered with
// success. It may be called until Close.
func (k *Kernel) Fence(err error) { k.root.Send(k.audit, fenced{err}) }

// acknowledged releases the batches that waited for a majority.
func (a *audit) acknowledged(ctx actor.Context, through uint64) {
	q := a.quorum
	if q == nil || a.stopped || through <= q.Acknowledged {
		return
	}
	q.Acknowledged = through
	a.present()
	a.release(ctx)
}

// quorumTick answers what has waited for too long. A kernel that ends waits for less time, and its own steps do not wait
// for the majority then: the next start sends their entries.
func (a *audit) quorumTick(ctx actor.Context) {
	q := a.quorum
	q.ticking = false
	if a.stopped {
		return
	}
	now, ending, patience := time.Now(), a.kernel.ending.Load(), q.Patience
	if ending {
		patience = 2 * q.step()
	} else if q.lost {
		patience = q.step()
	}
	kept := a.unreleased[:0]
	for _, h := range a.unreleased {
		waited := now.Sub(h.since)
		if !q.holds(&h) || h.seq > a.synced || waited < q.step() {
			kept = append(kept, h)
			continue
		}
		if waited >= patience && !q.away {
			q.away = true
			a.kernel.away.Store(true)
			a.log.Error("no majority of the bus acknowledges entries: commands are refused until one does", "entry", h.all, "acknowledged", q.Acknowledged)
		}
		own, _ := h.batch.sender.(*step)
		switch {
		case h.batch.answersFromDisk():
			h.batch.markDiskOnly()
			h.batch.sender.answer(ctx, a.kernel)
		case own != nil && own.ends == nil && ending:
			h.batch.sender.answer(ctx, a.kernel)
		case waited >= patience:
			if rest := a.giveUp(ctx, &h); rest != nil {
				kept = append(kept, *rest)
			}
		default:
			kept = append(kept, h)
		}
	}
	clear(a.unreleased[len(kept):])
	a.unreleased = kept
	a.release(ctx)
}

// giveUp answers a client that has waited for a majority for too long, and returns the batch that still waits: its entries
// stay in the journal, and its effects outside the kernel are still carried out when a majority has them.
func (a *audit) giveUp(ctx actor.Context, h *unreleased) (rest *unreleased) {
	if s, ok := h.batch.sender.(*step); ok {
		if s.ends != nil {
			f := s.ends
			s.ends, s.account = nil, nil
			f.calls[0].Effect, f.calls[0].Data, f.calls[0].Err = nil, nil, errUnknownOutcome(&f.calls[0])
			f.withoutProof()
			ctx.Send(f.replyTo, &f.batch)
		}
		return h
	}
	f, ok := h.batch.sender.(*frames)
	if !ok {
		return h
	}
	if f.intends() {
		a.notBegun(&f.calls[0])
	} else if list := f.effects(); list != nil {
		later := &step{}
		later.sender, later.domain = later, f.domain
		later.calls = slices.Clone(f.calls)
		rest = &unreleased{batch: &later.batch, seq: h.seq, all: h.all, since: h.since}
	}
	for i := range f.calls {
		call := &f.calls[i]
		if call.Throttled {
			continue
		}
		if call.Syscall != nil && call.Syscall.Kind == schema.KindCommand && call.Err == nil {
			call.Err = errUnknownOutcome(call)
		} else {
			call.Err = errAway()
		}
		call.Data, call.Lasting, call.Effect, call.Refs = nil, nil, nil, nil
	}
	f.withoutProof()
	ctx.Send(f.replyTo, &f.batch)
	return rest
}

// notBegun ends an intent whose caller was told that its outcome is unknown: it is not carried out.
func (a *audit) notBegun(call *kernel.Call) {
	end := &schema.EffectEnd{
		Intent: int64(call.Proof.Seq), Type: call.Message.Type, PID: call.PID, Causation: call.Message.Meta.Causation,
		Outcome: schema.AppendOutcome(nil, schema.KindCommand, &schema.Outcome{Err: errAway()}),
	}
	if do, ok := call.Effect.Run.(*kernel.Invocation); ok {
		end.Name = do.Name
	}
	step, err := a.kernel.step(call.AsCause(), call.Syscall.Ended(end))
	if err != nil {
		a.log.Error("effect has no outcome", "call", call, "error", err)
		return
	}
	step.calls[0].Holds = call.Holds
	a.kernel.send(step)
}

// fenced ends the kernel.
func (a *audit) fenced(ctx actor.Context, err error) {
	a.stopWith(ctx, err, func(*kernel.Call) *fault.Fault {
		return fault.ClusterFenced.New("another kernel writes the journal of this one on the bus: whether this was done shows there")
	})
}

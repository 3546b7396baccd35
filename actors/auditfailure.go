package actors

import (
	"errors"
	"slices"
	"syscall"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// failed rolls back a write that failed. If it has commands, domains have applied entries that are not in the journal: the
// callers get 503, and the domains rebuild their state from the journal. Otherwise only the entries are lost: the answers
// leave without a proof, when what they reveal is on disk. Commands are refused until a write succeeds.
func (a *audit) failed(ctx actor.Context, err error) {
	if errors.Is(err, journal.ErrStopped) {
		a.stop(ctx, err)
		return
	}
	why := errNotWritten
	if errors.Is(err, journal.ErrUncertain) {
		why = func(*kernel.Call) *fault.Fault { return errUncertain() }
	}
	lost := a.fresh
	a.fresh, a.appended = nil, a.written
	for _, b := range lost {
		a.uncount(b)
	}
	a.kernel.budgets.Lose()
	a.dropSnapshots()
	a.kernel.refusal.Store(new(reasonOf(err)))
	if a.kernel.refusing.CompareAndSwap(false, true) {
		a.log.Error("journal cannot be written: commands are refused until it can", "error", err)
	}
	// An entry that is too long although the reserve has room, such as the end of a hundred thousand processes, is refused
	// alone.
	if a.urgent && a.journal.Kept() < leastReserve && a.kernel.spent.CompareAndSwap(false, true) {
		a.log.Error("urgent entries cannot be written either: urgent commands are refused too", "error", err)
	}
	if !slices.ContainsFunc(lost, (*batch).applied) {
		for _, b := range lost {
			if b.outcomeOf() != nil { // its caller must be told what the next start will find
				a.refuse(ctx, b)
				continue
			}
			a.unconcluded(b)
			b.withoutProof()
			for i := range b.calls {
				a.kernel.keys.Forget(&b.calls[i]) // the outcome has no entry to refer to
			}
			a.hold(b, a.journal.Head().Seq)
		}
		a.release(ctx)
		return
	}
	a.epoch++
	a.rebuilding = make(map[schema.Domain]bool)
	for _, name := range []schema.Domain{schema.Approval, schema.Capability, schema.Process} {
		if pid, ok := a.kernel.domains[name]; ok {
			a.rebuilding[name] = true
			ctx.Watch(pid)
		}
	}
	a.tell(ctx, rebuild{a.epoch})
	if len(a.rebuilding) == 0 {
		a.tell(ctx, resume{a.epoch})
	}
	for _, b := range lost {
		a.refuseWith(ctx, b, why)
	}
}

// uncount removes a lost batch from the metrics, which are computed from the journal.
func (a *audit) uncount(b *batch) {
	for i := range b.calls {
		if !b.sender.unrecorded() && !b.calls[i].Throttled {
			a.metrics.Count(&b.calls[i], -1)
		}
	}
}

// leastReserve is the rest of a reserve, in bytes, at which it counts as used up: a few of the longest lines, and their
// steps.
const leastReserve = 64 << 10

// reasonOf returns the system's error that prevents writing the journal. The rest of err names files, which clients must
// not see.
func reasonOf(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	return "a write failed"
}

// stop ends the kernel: calls whose entries may not be on disk are not acknowledged. A running rebuild continues, so that
// domains refuse their queued calls.
func (a *audit) stop(ctx actor.Context, err error) {
	a.stopWith(ctx, err, func(*kernel.Call) *fault.Fault { return errUncertain() })
}

func (a *audit) stopWith(ctx actor.Context, err error, why func(*kernel.Call) *fault.Fault) {
	a.kernel.refusing.Store(true)
	a.kernel.spent.Store(true)
	a.kernel.requestShutdown(err)
	a.stopped = true
	a.dropSnapshots()
	lost := a.fresh
	for _, h := range a.unreleased {
		lost = append(lost, h.batch)
	}
	a.fresh, a.unreleased = nil, nil
	for _, b := range lost {
		a.refuseWith(ctx, b, why)
	}
}

// refuse answers b with 503: none of its calls took effect, except for steps that were recorded before.
func (a *audit) refuse(ctx actor.Context, b *batch) { a.refuseWith(ctx, b, errNotWritten) }

func (a *audit) refuseWith(ctx actor.Context, b *batch, why func(*kernel.Call) *fault.Fault) {
	a.unconcluded(b)
	b.withoutProof()
	intent := b.outcomeOf()
	s, _ := b.sender.(*step)
	mustApply := s != nil && s.mustApply
	for i := range b.calls {
		call := &b.calls[i]
		a.kernel.keys.Forget(call)
		a.kernel.budgets.Forget(call)
		call.Data, call.Lasting = nil, nil
		switch {
		case intent != nil:
			call.Err = errUnrecorded(intent.calls[0].Message.Type)
		case !mustApply && (call.Err == nil || call.Err.Kind != fault.Unavailable): // otherwise its error already says why
			call.Err = why(call)
		}
	}
	if mustApply {
		s.retrying = false
		a.retries = append(a.retries, s)
		return
	}
	b.sender.answer(ctx, a.kernel)
}

// unconcluded removes what is known of an intent, or of its outcome, whose entry is lost.
func (a *audit) unconcluded(b *batch) {
	if b.intends() {
		a.kernel.keys.Unintend(b.calls[0].Proof.Seq)
	}
	if end, ok := b.calls[0].Input.(*schema.EffectEnd); ok && b.outcomeOf() != nil {
		a.kernel.keys.Reopen(&b.outcomeOf().calls[0], end)
	}
}

func errUncertain() *fault.Fault {
	return fault.JournalLost.New("the journal's disk failed: whether this was done shows at the kernel's next start")
}

// rebuilt records that a registry shows only what is in the journal.
func (a *audit) rebuilt(ctx actor.Context, name schema.Domain) {
	if !a.rebuilding[name] {
		return
	}
	delete(a.rebuilding, name)
	if len(a.rebuilding) == 0 {
		a.tell(ctx, resume{a.epoch})
	}
}

// errUnrecorded answers a call with an effect whose outcome cannot be journaled.
func errUnrecorded(typ string) *fault.Fault {
	return fault.JournalLost.New("%s came to an end, but the journal cannot be written: its outcome counts as unknown", typ)
}

// retrySteps makes the postponed steps, before any command of a client, which may need what they release.
func (a *audit) retrySteps(ctx actor.Context) {
	for _, s := range a.retries {
		s.retrying = true
		ctx.Send(a.kernel.domains[s.domain], &s.batch)
	}
	a.retries = nil
}

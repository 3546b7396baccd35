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

// failed takes back what could not be written. Where commands are among it, every domain has applied what is not there:
// their callers get 503, and the domains make their states anew from the journal. Otherwise nothing is lost but the
// record: the answers go out without one, once what they reveal is on disk. Either way commands are refused until something can be written again.
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
	a.fresh = nil
	for _, b := range lost {
		a.uncount(b)
	}
	a.kernel.budgets.Lose()
	a.dropSnapshots()
	a.kernel.refusal.Store(new(reasonOf(err)))
	if a.kernel.refusing.CompareAndSwap(false, true) {
		a.log.Error("journal cannot be written: commands are refused until it can", "error", err)
	}
	// An entry that is too long for a reserve which has room, such as the end of a hundred thousand processes, is refused alone.
	if a.urgent && a.journal.Kept() < leastReserve && a.kernel.spent.CompareAndSwap(false, true) {
		a.log.Error("urgent entries cannot be written either: urgent commands are refused too", "error", err)
	}
	if !slices.ContainsFunc(lost, (*batch).applied) {
		for _, b := range lost {
			if b.outcomeOf() != nil { // what its caller is told is what the next start will find
				a.refuse(ctx, b)
				continue
			}
			a.unconcluded(b)
			b.withoutProof()
			for i := range b.calls {
				a.kernel.keys.Forget(&b.calls[i]) // an outcome without an entry is nobody's to refer to
			}
			a.held = append(a.held, hold{batch: b, seq: min(a.reveals(b), a.journal.Head().Seq)})
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

// uncount takes a batch whose entries were lost out of the metrics, which are of the journal alone.
func (a *audit) uncount(b *batch) {
	for i := range b.calls {
		if !b.unrecorded() && !b.calls[i].Throttled {
			a.metrics.Count(&b.calls[i], -1)
		}
	}
}

// leastReserve is what is left of a reserve that is as good as used up, in bytes: some lines of the longest, and their steps.
const leastReserve = 64 << 10

// reasonOf is the system's word for what keeps the journal from being written. The rest of err names files, which are not
// everybody's to know.
func reasonOf(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	return "a write failed"
}

// applied reports whether a command of b has changed its domain's state.
func (b *batch) applied() bool {
	return slices.ContainsFunc(b.calls, func(c kernel.Call) bool { return c.Syscall.Kind == schema.KindCommand && c.Err == nil && !c.Repeated })
}

// urgent reports whether b may use the journal's reserve: urgent calls of it have changed their domain's state, and no
// others have. What was refused leaves no more behind than any other refusal, however often it is tried.
func (b *batch) urgent() (urgent bool) {
	for i := range b.calls {
		c := &b.calls[i]
		if c.Syscall.Kind != schema.KindCommand || c.Err != nil || c.Repeated {
			continue
		}
		if !c.Urgent {
			return false
		}
		urgent = true
	}
	return urgent
}

func (b *batch) withoutProof() {
	for i := range b.calls {
		b.calls[i].Proof = schema.Proof{}
	}
}

// stop ends the kernel: what is not known to be on disk is not acknowledged. A rebuild that is under way goes on, so that domains
// have what they hold refused too.
func (a *audit) stop(ctx actor.Context, err error) {
	a.kernel.refusing.Store(true)
	a.kernel.spent.Store(true)
	a.kernel.requestShutdown(err)
	a.stopped = true
	a.dropSnapshots()
	lost := a.fresh
	for _, h := range a.held {
		lost = append(lost, h.batch)
	}
	a.fresh, a.held = nil, nil
	for _, b := range lost {
		a.refuseWith(ctx, b, func(*kernel.Call) *fault.Fault { return errUncertain() })
	}
}

// refuse answers b with 503: as far as anybody can see, its calls were never made, but for steps that they had taken.
func (a *audit) refuse(ctx actor.Context, b *batch) { a.refuseWith(ctx, b, errNotWritten) }

func (a *audit) refuseWith(ctx actor.Context, b *batch, why func(*kernel.Call) *fault.Fault) {
	a.unconcluded(b)
	b.withoutProof()
	intent := b.outcomeOf()
	s, _ := b.sender.(*step)
	owed := s != nil && s.owed
	for i := range b.calls {
		call := &b.calls[i]
		a.kernel.keys.Forget(call)
		a.kernel.budgets.Forget(call)
		call.Data, call.Lasting = nil, nil
		switch {
		case intent != nil:
			call.Err = errUnrecorded(intent.calls[0].Message.Type)
		case !owed && (call.Err == nil || call.Err.Kind != fault.Unavailable): // else it says why already
			call.Err = why(call)
		}
	}
	if owed {
		s.due = false
		a.owed = append(a.owed, s)
		return
	}
	b.sender.answer(ctx, a)
}

// unconcluded takes back what is known of an intent, or of its outcome, whose entry is lost.
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

// errNotWritten is what a call is answered whose entry cannot be written.
func errNotWritten(call *kernel.Call) *fault.Fault {
	if !call.Begun {
		return errNoJournal()
	}
	return fault.JournalLost.New(
		"the journal cannot be written: %s was begun, and a part of it may be done; try again once its disk has room", call.Message.Type)
}

// errNoState is what a call is answered while its domain's state cannot be read from the journal.
func errNoState() *fault.Fault {
	return fault.JournalUnavailable.New("the journal cannot be read: nothing was done; try again in a few seconds")
}

func errNoJournal() *fault.Fault {
	return fault.JournalUnavailable.New("the journal cannot be written: nothing was done; try again once its disk has room")
}

// rebuild has a domain make its state anew from the journal, and hold calls until resume: what the registries show is
// what was lost until all of them are done.
type rebuild struct{ epoch uint64 }

// rebuilt says that it has.
type rebuilt struct {
	domain schema.Domain
	epoch  uint64
}

// resume has a domain go on.
type resume struct{ epoch uint64 }

// rebuilt notes that a registry shows nothing any more that was lost.
func (a *audit) rebuilt(ctx actor.Context, name schema.Domain) {
	if !a.rebuilding[name] {
		return
	}
	delete(a.rebuilding, name)
	if len(a.rebuilding) == 0 {
		a.tell(ctx, resume{a.epoch})
	}
}

// tell sends a message to every domain, in the order of their names: a run can be told from its input alone.
func (a *audit) tell(ctx actor.Context, message any) {
	for _, name := range a.kernel.names {
		ctx.Send(a.kernel.domains[name], message)
	}
}

// errUnrecorded is what the caller gets of an effect whose outcome cannot be journaled.
func errUnrecorded(typ string) *fault.Fault {
	return fault.JournalLost.New("%s came to an end, but the journal cannot be written: its outcome counts as unknown", typ)
}

package actors

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// maxBatch bounds a batch, so that no connection keeps a domain busy for long. Commands that arrive together share one
// fsync only if they share a batch.
const maxBatch = 64

// local is the domain of frames that the connection answers itself.
const local schema.Domain = ""

// batch is a number of calls in flight: to a domain, from there to the audit log, and back to their sender. One actor owns
// it at a time.
type batch struct {
	sender  sender
	domain  schema.Domain
	calls   []kernel.Call
	account *share // of the agent that makes these calls, or for which they are made; nil: the operator's

	begun    time.Time // when its last call was decided: the latency of an intent starts here
	until    time.Time // when a waiting call is decided for the last time
	question string    // id of the question that its first call waits for at the gate, or ""

	epoch uint64 // of the journal in which it was decided
}

// sender is the origin of a batch: the *frames of a connection, a *step of the kernel, the *question of a subscription. It
// implements what differs between them; batch implements what is common to most.
type sender interface {
	// ready reports whether a domain may run the batch now. If not, it has queued or refused the batch.
	ready(ctx actor.Context, d *domain) bool
	// admit returns the gate's verdict on a call.
	admit(d *domain, call *kernel.Call) kernel.Verdict
	// decide returns the outcome of an admitted call.
	decide(d *domain, call *kernel.Call) (kernel.Result, error)
	// park keeps the batch until its call can be decided again.
	park(ctx actor.Context, d *domain, wait time.Duration)
	// giveUp cancels the wait of a parked batch.
	giveUp(ctx actor.Context, d *domain)
	// final makes the domain decide the call without waiting.
	final()
	// refuse answers the calls from the given one on, because the domain has no state now.
	refuse(ctx actor.Context, d *domain, from int)
	// charge adds the outcome of a call to its agent's bytes in flight.
	charge(call *kernel.Call)
	// answer is called when nothing that the outcomes reveal can be lost.
	answer(ctx actor.Context, k *Kernel)

	// What follows is nothing for most senders.

	// unrecorded reports whether the batch has no entry.
	unrecorded() bool
	// over reports whether nobody waits for the outcome any more.
	isOver() bool
	// work returns the context of what is computed for the batch.
	work() context.Context
	// split forwards the first n calls by themselves.
	split(ctx actor.Context, d *domain, n int)
	// pend is called when the call i waits at the gate.
	pend(ctx actor.Context, d *domain, i int)
	// forwarded is called when the batch was sent to the audit log.
	forwarded(ctx actor.Context)
}

func (b *batch) park(ctx actor.Context, d *domain, wait time.Duration) { d.park(ctx, b, wait) }

func (b *batch) giveUp(ctx actor.Context, d *domain) {
	call := &b.calls[0]
	call.Err = fault.CallCancelled.New("%s stopped waiting: its connection is closed, or the kernel is shutting down", call.Message.Type)
	d.kernel.keys.Record(call)
	d.forward(ctx, b)
}

func (b *batch) final() {}

func (b *batch) refuse(ctx actor.Context, d *domain, from int) {
	for i := from; i < len(b.calls); i++ {
		d.fail(&b.calls[i], errNoState())
	}
	d.forward(ctx, b)
}

func (b *batch) charge(*kernel.Call) {}

func (b *batch) unrecorded() bool { return false }

func (b *batch) isOver() bool { return false }

func (b *batch) work() context.Context { return context.Background() }

func (b *batch) split(actor.Context, *domain, int) {}

func (b *batch) pend(actor.Context, *domain, int) {}

func (b *batch) forwarded(actor.Context) {}

// throttled reports whether no call of b has an entry, because the agent exceeds a bound.
func (b *batch) throttled() bool {
	for i := range b.calls {
		if !b.calls[i].Throttled {
			return false
		}
	}
	return true
}

// intends reports whether b is an intent that has no outcome yet.
func (b *batch) intends() bool {
	return len(b.calls) == 1 && b.calls[0].Err == nil && b.calls[0].Effect != nil && b.calls[0].Effect.Run != nil
}

// effects returns what the calls of b need done outside the kernel.
func (b *batch) effects() (list []effect) {
	for i := range b.calls {
		if call := &b.calls[i]; call.Effect != nil && call.Err == nil {
			list = append(list, effect{call.Effect, *call.AsCause()})
		}
	}
	return list
}

// LogValue names b without its calls: the library logs messages to stopped actors, and payloads must not be logged.
func (b *batch) LogValue() slog.Value {
	return slog.GroupValue(slog.String("domain", string(b.domain)), slog.Int("calls", len(b.calls)))
}

// applied reports whether a command of b has changed its domain's state.
func (b *batch) applied() bool {
	return slices.ContainsFunc(b.calls, func(c kernel.Call) bool { return c.Syscall.Kind == schema.KindCommand && c.Err == nil && !c.Repeated })
}

// urgent reports whether b may use the journal's reserve: only urgent calls in it have changed their domain's state. A
// refused call is not urgent, so repeating it does not use up the reserve.
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

func (b *batch) markDiskOnly() {
	for i := range b.calls {
		b.calls[i].Proof.DiskOnly = true
	}
}

// effect is an effect of a call that is on disk.
type effect struct {
	effect *kernel.Work
	cause  kernel.Cause
}

// errInterrupted answers a call whose actor died.
func errInterrupted(typ string) *fault.Fault {
	return fault.KernelInterrupted.New("the kernel failed while %s was in flight: it may or may not have happened", typ)
}

// errHungUp cancels an effect when its connection has closed.
var errHungUp = fault.CallCancelled.New("its connection is closed")

// errNoState answers a call whose domain's state cannot be read from the journal at present.
func errNoState() *fault.Fault {
	return fault.JournalUnavailable.New("the journal cannot be read: nothing was done; try again in a few seconds")
}

// errNotWritten answers a call whose entry cannot be written.
func errNotWritten(call *kernel.Call) *fault.Fault {
	if !call.Begun {
		return record.Unavailable()
	}
	return fault.JournalLost.New(
		"the journal cannot be written: %s was begun, and a part of it may be done; try again once its disk has room", call.Message.Type)
}

// begun reports whether a runner that returned err has begun. A call at another kernel that waits for an approval there was not made.
func begun(err error) bool {
	return !errors.Is(err, fault.ClusterKernelAway) && !errors.Is(err, fault.ApprovalPending) && !errors.Is(err, fault.ProviderAway) && !errors.Is(err, fault.ProviderItself) && !errors.Is(err, fault.WireInvalidInput)
}

// Messages of the journal to agents.
type (
	noted struct { // a note is on disk, or cannot be written
		tick int64
		err  *fault.Fault
	}
	expired struct{ grace time.Duration } // another host may lead the kernel: no program may run here
	retimed struct{}                      // wall_seconds were granted to some process
)

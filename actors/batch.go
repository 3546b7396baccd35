package actors

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// batch is calls that go the same way: to a domain, from there to the audit log, and back to their sender. It has one owner at a
// time.
type batch struct {
	sender  sender
	domain  schema.Domain
	calls   []kernel.Call
	account *drawing // of the agent that these calls are made by, or for; nil: the operator's

	begun    time.Time // when its last call was decided: an intent's latency counts from here
	until    time.Time // when a waiting call is decided for the last time
	question string    // what its first call waits at the gate for; "": nothing

	epoch uint64 // which life of the journal it was decided in
}

// sender is what sends a batch: a connection its *frames, the kernel a *step of its own, a subscription its *question. It says what
// the batch means to the actors that it passes. What a batch does by itself is what most of them do.
type sender interface {
	// ready reports whether a domain may run the batch now. Otherwise it has put it where it waits, or given it up.
	ready(ctx actor.Context, d *domain) bool
	// admit is the gate's verdict on a call.
	admit(d *domain, call *kernel.Call) kernel.Verdict
	// decide is what comes of an admitted call.
	decide(d *domain, call *kernel.Call) (kernel.Result, error)
	// park keeps the batch until its call is worth deciding again.
	park(ctx actor.Context, d *domain, wait time.Duration)
	// giveUp ends the waiting of a parked batch.
	giveUp(ctx actor.Context, d *domain)
	// final has no call wait any more.
	final()
	// refuse is run for a domain whose state cannot be made, from the given call on.
	refuse(ctx actor.Context, d *domain, from int)
	// charge adds the outcome of a call to what its agent has in flight.
	charge(call *kernel.Call)
	// answer is run when nothing of what the outcomes reveal can be lost any more.
	answer(ctx actor.Context, a *audit)
}

func (b *batch) park(ctx actor.Context, d *domain, wait time.Duration) { d.park(ctx, b, wait) }

func (b *batch) giveUp(ctx actor.Context, d *domain) {
	call := &b.calls[0]
	call.Err = fault.CallCancelled.New("%s stopped waiting: its connection is closed, or the kernel is shutting down", call.Message.Type)
	d.kernel.keys.Settle(call)
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

// unrecorded reports whether b leaves nothing in the journal: it is the kernel's own look at what stands there already.
func (b *batch) unrecorded() bool {
	_, ok := b.sender.(*question)
	return ok && b.calls[0].Syscall.Kind == schema.KindQuery
}

// throttled reports whether no call of b has an entry, because all were refused before they were judged.
func (b *batch) throttled() bool {
	for i := range b.calls {
		if !b.calls[i].Throttled {
			return false
		}
	}
	return true
}

// intends reports whether b is an intent that nothing has come of yet.
func (b *batch) intends() bool {
	return len(b.calls) == 1 && b.calls[0].Err == nil && b.calls[0].Effect != nil && b.calls[0].Effect.Run != nil
}

// effects are what the calls of b need done outside the kernel.
func (b *batch) effects() (list []effect) {
	for i := range b.calls {
		if call := &b.calls[i]; call.Effect != nil && call.Err == nil {
			list = append(list, effect{call.Effect, kernel.Call{
				Caller: call.Caller, Origin: call.Origin, Urgent: call.Urgent, Message: schema.Message{Meta: call.Message.Meta},
			}})
		}
	}
	return list
}

// fill makes b the kernel's own call of a request, with the call that it is for as its cause.
func (k *Kernel) fill(b *batch, cause *kernel.Call, request schema.Request) *fault.Fault {
	data, err := schema.Marshal(request.Input)
	if err != nil {
		return fault.Of(err)
	}
	b.domain = request.Row.Domain
	b.calls = []kernel.Call{stepCall(&k.ids, cause, request, request.Row, data)}
	return nil
}

// LogValue names b without its calls: a message that finds its actor gone is logged, and a payload in a log is a leak.
func (b *batch) LogValue() slog.Value {
	return slog.GroupValue(slog.String("domain", string(b.domain)), slog.Int("calls", len(b.calls)))
}

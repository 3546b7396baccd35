package actors

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/effect/provide"
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

// frames are consecutive frames of one connection that go to one domain, or that the connection answers itself (domain
// local) because they could not be decoded. The connection fills them, the domain decides them, and the connection writes
// their answers and recycles them. A call of the kernel itself is sent as by a connection with one frame.
type frames struct {
	batch
	size     int // bytes read for these calls: with their number, the credits to return
	answers  int // bytes of their outcomes that were charged to the account
	replyTo  *actor.PID
	from     provide.Provider // that made these calls; nil: the kernel
	alone    bool             // its calls run alone on their connection
	ctx      context.Context  // of calls that run alone: ends with the connection, or when the client disconnects
	run      kernel.Runner    // carries out the effect of a call of the kernel itself; nil: the runner of its row
	waits    func()           // called when its call waits at the gate; nil: nothing is
	answered bool             // they have returned, and wait for earlier batches
}

var framesPool = sync.Pool{New: func() any { return new(frames) }}

func newFrames() *frames {
	f := framesPool.Get().(*frames)
	f.sender = f
	return f
}

// recycle returns f to the pool.
func (f *frames) recycle() {
	clear(f.calls)
	*f = frames{batch: batch{calls: f.calls[:0]}}
	framesPool.Put(f)
}

// ready queues frames behind an earlier call of their connection that waits at the gate.
func (f *frames) ready(_ actor.Context, d *domain) bool {
	conn := f.calls[0].Caller.Conn
	p := d.pended[conn]
	if p == nil {
		return true
	}
	if p.batch != &f.batch {
		p.behind = append(p.behind, &f.batch)
		return false
	}
	delete(d.pended, conn)
	d.queue = slices.Concat(p.behind, d.queue)
	return true
}

func (f *frames) admit(d *domain, call *kernel.Call) kernel.Verdict {
	if f.alone && call.Syscall.Kind == schema.KindQuery {
		call.Progress = f.progress(d.kernel)
	}
	return d.kernel.gate.Admit(call)
}

// decide returns the outcome of the first call with the same idempotency key, or asks the state machine.
func (f *frames) decide(d *domain, call *kernel.Call) (kernel.Result, error) {
	if call.Syscall.Kind == schema.KindQuery {
		return d.decide(call, f.alone)
	}
	call.Urgent = call.Syscall.Urgent && call.Caller.PID == kernel.Operator
	if d.kernel.refusing.Load() && (!call.Urgent || d.kernel.spent.Load()) {
		return kernel.Result{}, record.Unavailable()
	}
	if d.kernel.away.Load() && !call.Urgent {
		call.Throttled = true
		return kernel.Result{}, errAway()
	}
	if call.Message.Meta.IdempotencyKey == "" || call.Claimed {
		return d.decide(call, f.alone)
	}
	first, err := d.kernel.keys.Claim(call)
	switch {
	case err != nil:
		return kernel.Result{}, err
	case first == nil:
		return d.decide(call, f.alone)
	}
	call.Repeated = true
	if first.Err != nil {
		return kernel.Result{}, first.Err
	}
	result := kernel.Result{Data: first.Data, Refs: first.Refs}
	if r, ok := d.state.(kernel.Repeater); ok { // the first call may not be answered yet
		result.Effect = r.Repeat(call, first.Data)
	}
	return result, nil
}

// progress returns the function that pushes the progress of the first call to the connection, or nil if the caller has not
// asked for progress.
func (f *frames) progress(k *Kernel) func(kernel.Event) {
	m := &f.calls[0].Message
	if !m.Meta.Progress {
		return nil
	}
	to, dialect := f.replyTo, m.Dialect
	return func(e kernel.Event) { k.root.Send(to, &progressed{dialect, e}) }
}

// giveUp leaves it to the gate to refuse a call that waits there.
func (f *frames) giveUp(ctx actor.Context, d *domain) {
	if f.question == "" {
		f.batch.giveUp(ctx, d)
	} else {
		d.queue = append(d.queue, &f.batch)
	}
}

func (f *frames) final() {
	for i := range f.calls {
		f.calls[i].Final, f.calls[i].Disconnected = true, true
	}
}

func (f *frames) charge(call *kernel.Call) {
	if f.account != nil {
		f.answers += len(call.Data)
		f.account.add(len(call.Data))
	}
}

// answer sends the frames back to their connection, after their effects outside the kernel.
func (f *frames) answer(ctx actor.Context, k *Kernel) {
	f.bind(k.providers)
	if f.intends() {
		k.runs.begin(f)
	} else if list := f.effects(); list != nil {
		ctx.Send(k.agents, effects{list, f}) // agents owns them from here on
	} else {
		ctx.Send(f.replyTo, &f.batch)
	}
}

// work ends with the connection, for a call that runs alone.
func (f *frames) work() context.Context {
	if f.ctx == nil {
		return context.Background()
	}
	return f.ctx
}

// pend keeps the later frames of the connection in order behind the call i.
func (f *frames) pend(ctx actor.Context, d *domain, i int) {
	if i > 0 {
		f.split(ctx, d, i)
	}
	if d.pended == nil {
		d.pended = make(map[string]*pended)
	}
	d.pended[f.calls[0].Caller.Conn] = &pended{batch: &f.batch}
	if f.waits != nil {
		f.waits()
	}
}

// split tells a connection that head, the first calls of rest, returns separately and before rest.
type split struct{ head, rest *frames }

// split forwards the first n calls of f, so that their entries precede those of the next call's steps, as they were
// applied. The connection now waits for two batches.
func (f *frames) split(ctx actor.Context, d *domain, n int) {
	head := newFrames()
	head.domain, head.replyTo, head.from, head.account = f.domain, f.replyTo, f.from, f.account
	head.answers, f.answers = f.answers, 0 // only the calls of head have outcomes
	head.calls = append(head.calls, f.calls[:n]...)
	left := copy(f.calls, f.calls[n:])
	clear(f.calls[left:])
	f.calls = f.calls[:left]
	ctx.Send(f.replyTo, split{head: head, rest: f})
	d.forward(ctx, &head.batch)
}

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

// fill makes b a call of the kernel itself, with cause as its cause.
func (k *Kernel) fill(b *batch, cause *kernel.Cause, request schema.Request) *fault.Fault {
	data, err := schema.Marshal(request.Input)
	if err != nil {
		return fault.Of(err)
	}
	b.domain = request.Row.Domain
	b.calls = []kernel.Call{kernel.StepOf(cause, request, data, k.ids.next(), time.Now())}
	return nil
}

// LogValue names b without its calls: the library logs messages to stopped actors, and payloads must not be logged.
func (b *batch) LogValue() slog.Value {
	return slog.GroupValue(slog.String("domain", string(b.domain)), slog.Int("calls", len(b.calls)))
}

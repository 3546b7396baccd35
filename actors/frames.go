package actors

import (
	"context"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// maxBatch bounds a batch, so that no connection holds a domain for long. Commands that come together share one fsync
// only if they share a batch.
const maxBatch = 64

// local marks frames that no domain sees.
const local schema.Domain = ""

// frames are consecutive frames of one connection that go the same way: all to one domain, or all answered by the connection itself
// (domain local), because they never became calls. The connection fills them, the domain decides them, the connection writes their
// answers and recycles them. A call of the kernel's own is a frame of a connection that has no other.
type frames struct {
	batch
	size     int // bytes read for these calls: with their number, the credits to give back
	answers  int // bytes of their outcomes that the account was charged with
	replyTo  *actor.PID
	alone    bool            // nothing else of the connection is under way beside them
	ctx      context.Context // of frames that are alone: it ends with the connection, or once the client hangs up
	run      *ownRun         // does the effect, where it is the kernel's own call: Act
	answered bool            // they have come back, and wait for those before them
}

var framesPool = sync.Pool{New: func() any { return new(frames) }}

func newFrames() *frames {
	f := framesPool.Get().(*frames)
	f.sender = f
	return f
}

// recycle ends the life of f.
func (f *frames) recycle() {
	clear(f.calls)
	*f = frames{batch: batch{calls: f.calls[:0]}}
	framesPool.Put(f)
}

// ready holds frames back while an earlier call of their connection waits at the gate. Where that is theirs, the others follow them.
func (f *frames) ready(_ actor.Context, d *domain) bool {
	conn := f.calls[0].Caller.Conn
	p := d.pended[conn]
	if p == nil {
		return true
	}
	if p.frames != f {
		p.behind = append(p.behind, &f.batch)
		return false
	}
	delete(d.pended, conn)
	d.queue = slices.Concat(p.behind, d.queue)
	return true
}

func (f *frames) admit(d *domain, call *kernel.Call) kernel.Verdict { return d.kernel.gate.Admit(call) }

// decide is what came of the call's first run, where its idempotency key was used before, else what the state machine decides.
func (f *frames) decide(d *domain, call *kernel.Call) (kernel.Result, error) {
	if call.Syscall.Kind == schema.KindQuery {
		return d.decide(call, f.alone)
	}
	call.Urgent = call.Syscall.Urgent && call.Caller.PID == kernel.Operator
	if d.kernel.refusing.Load() && (!call.Urgent || d.kernel.spent.Load()) {
		return kernel.Result{}, errNoJournal()
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
	if r, ok := d.state.(kernel.Repeater); ok { // the first may not have been answered yet
		result.Effect = r.Repeat(call, first.Data)
	}
	return result, nil
}

// giveUp leaves the last word to the gate, where that is what they wait at.
func (f *frames) giveUp(ctx actor.Context, d *domain) {
	if f.question == "" {
		f.batch.giveUp(ctx, d)
	} else {
		d.queue = append(d.queue, &f.batch)
	}
}

func (f *frames) final() {
	for i := range f.calls {
		f.calls[i].Final, f.calls[i].Gone = true, true
	}
}

func (f *frames) charge(call *kernel.Call) {
	if f.account != nil {
		f.answers += len(call.Data)
		f.account.add(len(call.Data))
	}
}

// answer sends them back to their connection, once what is to be done outside the kernel first is done.
func (f *frames) answer(ctx actor.Context, a *audit) {
	if f.intends() {
		a.kernel.runs.begin(f)
	} else if list := f.effects(); list != nil {
		ctx.Send(a.kernel.agents, effects{list, f}) // whose they are from here on
	} else {
		ctx.Send(f.replyTo, &f.batch)
	}
}

// split tells a connection that head, the first calls of rest, will come back on its own, before rest.
type split struct{ head, rest *frames }

// split forwards the first n calls of f, so that they stand in the journal before the steps of the one behind them, as
// they were applied. The connection is told that what it waits for has become two.
func (f *frames) split(ctx actor.Context, d *domain, n int) {
	head := newFrames()
	head.domain, head.replyTo, head.account = f.domain, f.replyTo, f.account
	head.answers, f.answers = f.answers, 0 // only the calls of head have outcomes
	head.calls = append(head.calls, f.calls[:n]...)
	left := copy(f.calls, f.calls[n:])
	clear(f.calls[left:])
	f.calls = f.calls[:left]
	ctx.Send(f.replyTo, split{head: head, rest: f})
	d.forward(ctx, &head.batch)
}

package actors

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/effect/provide"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

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

func errAway() *fault.Fault {
	return fault.ClusterAway.New("no majority of the bus acknowledges entries of the journal: nothing was done; try again once the bus is back (pwos cluster status)")
}

func errUnknownOutcome(call *kernel.Call) *fault.Fault {
	return fault.ClusterUnknown.New("%s is on the disk of this kernel, and no majority of the bus has acknowledged it in time: it may be lost; send it again with its idempotency key once the bus is back", call.Message.Type)
}

// effects are those of a batch, whose answers wait for them; batch is nil if there are no answers.
type effects struct {
	list  []effect
	batch *frames
}

// LogValue does not show the calls.
func (e effects) LogValue() slog.Value { return slog.IntValue(len(e.list)) }

// answersFromDisk reports whether b may be answered from the kernel's own disk while there is no majority: urgent commands
// of the operator, and the operator's queries about the kernel itself.
func (b *batch) answersFromDisk() bool {
	if b.urgent() {
		return true
	}
	if _, ok := b.sender.(*frames); !ok {
		return false
	}
	for i := range b.calls {
		call := &b.calls[i]
		if call.Caller.PID != kernel.Operator || call.Caller.Via == kernel.ViaCluster || call.Syscall == nil || call.Syscall.Kind != schema.KindQuery {
			return false
		}
	}
	switch b.domain {
	case schema.Kernel, schema.Audit, schema.Process, schema.Capability, schema.Resource, schema.Budget:
		return true
	}
	return false
}

// progressed sends a connection the progress of a call.
type progressed struct {
	dialect schema.Dialect // of the call
	event   kernel.Event
}

// bind makes the connection of f the provider of what it registers. A registration is bound when its answer leaves, and
// effects begin in the same order: who can see the registration can call it.
func (f *frames) bind(p *provide.Calls) {
	for i := range f.calls {
		if call := &f.calls[i]; f.from != nil && provide.Registers(call) {
			p.Bind(call, f.from)
		}
	}
}

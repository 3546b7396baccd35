package actors

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// domain is the actor that owns a state machine: it alone calls Decide and Apply, one call at a time, in the order of its
// mailbox. A call that needs other domains' doing has its steps done first, one after the other, and holds up the calls
// behind it meanwhile; a call that waits holds up nobody.
type domain struct {
	kernel *Kernel
	name   schema.Domain
	state  kernel.Domain
	log    *slog.Logger
	epoch  uint64 // which life of the journal the state belongs to

	queue  []*batch // batches that stand behind a call with steps
	busy   *saga    // that call
	parked []*parked
}

// saga is a call whose steps are under way.
type saga struct {
	batch  *batch
	at     int // the call's place in the batch
	result kernel.Result
	begun  time.Time
}

// stepDone tells the domain of a saga that its step has been applied, or why it could not be.
type stepDone struct{ err *schema.Error }

// Receive runs what came in, as far as it goes.
func (d *domain) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *batch:
		if d.busy != nil {
			d.queue = append(d.queue, m)
			return
		}
		d.run(ctx, m, 0)
	case stepDone:
		d.step(ctx, m.err)
	case *parked:
		d.unpark(ctx, m)
	case hangUp:
		d.hangUp(ctx, m.conn)
	case rebuild:
		d.rebuild(m.epoch)
	}
	for d.busy == nil && len(d.queue) > 0 {
		b := d.queue[0]
		d.queue = d.queue[1:]
		d.run(ctx, b, 0)
	}
}

// run runs the calls of b from the given one on, and forwards b when all have an outcome. It returns early when one has
// steps to be done first, or waits.
func (d *domain) run(ctx actor.Context, b *batch, from int) {
	for i := from; i < len(b.calls); i++ {
		call := &b.calls[i]
		begun := time.Now()
		if call.Time == 0 {
			call.Time = begun.UnixMilli()
		}
		result, err := d.outcome(call, b)
		switch {
		case err != nil:
			d.fail(call, err)
		case result.Wait > 0 && !call.Final:
			d.park(ctx, b, result.Wait)
			return
		case len(result.Steps) > 0:
			d.busy = &saga{batch: b, at: i, result: result, begun: begun}
			d.step(ctx, nil)
			return
		default:
			d.finish(ctx, call, &result)
		}
		call.Proof.LatencyUS += microseconds(begun)
	}
	d.forward(ctx, b)
}

// outcome is what comes of a call: that of its first run, where its idempotency key was used before, else what the state
// machine decides, where the caller may call it.
func (d *domain) outcome(call *kernel.Call, b *batch) (kernel.Result, error) {
	if b.step {
		call.Tick = d.kernel.clock.now()
		return d.decide(call)
	}
	if err := d.kernel.admit(call); err != nil {
		return kernel.Result{}, err
	}
	if call.Syscall.Kind == schema.Query {
		return d.decide(call)
	}
	if d.kernel.refusing.Load() {
		return kernel.Result{}, errNoJournal()
	}
	if call.Message.Meta.IdempotencyKey != "" && b.until.IsZero() {
		first, err := d.kernel.keys.claim(call)
		if err != nil {
			return kernel.Result{}, err
		}
		if first != nil {
			call.Repeated = true
			if first.err != nil {
				return kernel.Result{}, first.err
			}
			return kernel.Result{Data: first.data}, nil
		}
	}
	return d.decide(call)
}

func (d *domain) fail(call *kernel.Call, err error) {
	call.Err = schema.AsError(err)
	d.settle(call)
	if call.Err.Class == schema.Internal {
		d.log.Error("syscall failed", "call", call, "error", err)
	}
}

// finish gives a call its successful outcome.
func (d *domain) finish(ctx actor.Context, call *kernel.Call, result *kernel.Result) {
	call.Data = result.Data
	d.settle(call)
	if call.Repeated {
		return
	}
	if result.Tick > call.Tick {
		d.kernel.clock.reach(result.Tick)
		call.Tick = result.Tick
	}
	if call.Syscall.Kind == schema.Command {
		d.state.Apply(call)
	}
	if result.Shutdown {
		d.kernel.requestShutdown(nil)
	}
	d.wake(ctx, result.Wakes)
}

// settle gives the call's idempotency key its outcome. A refusal is none: the call was not run, and may be tried again
// once it is allowed.
func (d *domain) settle(call *kernel.Call) {
	if call.Repeated || call.Message.Meta.IdempotencyKey == "" || call.Syscall.Kind != schema.Command {
		return
	}
	switch {
	case call.Err != nil && call.Err.Class == schema.Forbidden:
		d.kernel.keys.forgetUnsettled(call)
	default:
		d.kernel.keys.settle(call)
	}
}

// rebuild makes the state anew from the journal, which has lost what the state had applied.
func (d *domain) rebuild(epoch uint64) {
	if err := d.kernel.restore(d.name, d.state); err != nil {
		d.kernel.requestShutdown(fmt.Errorf("rebuild domain %s: %w", d.name, err))
		return
	}
	d.epoch = epoch
	d.publish()
}

// publish lets the other domains see what was applied.
func (d *domain) publish() {
	if p, ok := d.state.(kernel.Publisher); ok {
		p.Publish()
	}
}

// forward sends a finished batch to the audit log, and lets the other domains see what it changed. In this order: what
// they decide on the strength of it then stands behind it in the journal.
func (d *domain) forward(ctx actor.Context, b *batch) {
	b.epoch = d.epoch
	step, replyTo, err := b.step, b.replyTo, b.calls[0].Err
	ctx.Send(d.kernel.audit, b)
	d.publish()
	if step && replyTo != nil {
		ctx.Send(replyTo, stepDone{err})
	}
}

// decide asks the state machine. A panic is that caller's failure alone, since Decide changes nothing.
func (d *domain) decide(call *kernel.Call) (result kernel.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			d.log.Error("syscall panicked", "call", call, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("decide %s: panic: %v", call.Message.Type, r)
		}
	}()
	return d.state.Decide(call)
}

// microseconds is the time since begun, rounded up: nothing takes no time at all.
func microseconds(begun time.Time) int64 {
	return int64((time.Since(begun) + time.Microsecond - 1) / time.Microsecond)
}

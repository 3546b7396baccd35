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

	finished handover

	rebuilding rebuilding
	late       *stepDone // came while the state was made anew

	queue   []*batch               // batches that stand behind a call with steps
	busy    *saga                  // that call
	watched map[schema.Domain]bool // domains of steps, which will tell when they die
	parked  map[int64][]*parked    // by the PID of their call, in the order in which they began to wait

	watching []*batch // queries that follow: whatever the domain applies may be news to them
	news     uint64   // how often there was some
}

// saga is a call whose steps are under way.
type saga struct {
	batch  *batch
	at     int // the call's place in the batch
	result kernel.Result
	begun  time.Time
	epoch  uint64        // the life of the journal in which it began
	awaits schema.Domain // whose step is under way
}

// stepDone tells the domain of a saga that its step has been applied, or why it could not be.
type stepDone struct {
	saga *saga
	err  *schema.Error
}

// Receive runs what came in, as far as it goes.
func (d *domain) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *batch:
		if d.busy != nil || d.rebuilding.waits() {
			d.queue = append(d.queue, m)
			return
		}
		d.run(ctx, m, 0)
	case handOver:
		d.gather(ctx, m.yielded)
	case stepDone:
		d.stepDone(ctx, m)
	case *actor.Terminated:
		d.otherDied(ctx, m.Who)
	case *actor.Stopping:
		d.handOver(ctx) // the message that would have done it comes too late
	case *actor.Stopped:
		d.stopped(ctx)
		return
	case *parked:
		d.unpark(ctx, m)
	case wakeUp:
		d.wakeAll(ctx)
	case reading:
		d.haveRead(ctx, &m)
	case hangUp:
		d.hangUp(ctx, m.conn)
	case takeSnapshot:
		d.snapshot(ctx, m.epoch)
	case rebuild:
		d.rebuild(ctx, m.epoch)
	case restoreAgain:
		d.restoreAgain(ctx, m.epoch)
	case stalled:
		d.stall(ctx, m.epoch)
	case resume:
		d.resume(ctx, m.epoch)
	}
	for d.busy == nil && !d.rebuilding.waits() && len(d.queue) > 0 {
		b := d.queue[0]
		d.queue = d.queue[1:]
		d.run(ctx, b, 0)
	}
}

// run runs the calls of b from the given one on, and forwards b when all have an outcome. It returns early when one has
// steps to be done first, or waits.
func (d *domain) run(ctx actor.Context, b *batch, from int) {
	if b.follow != nil && b.follow.over.Load() {
		d.giveUp(ctx, b)
		return
	}
	if d.rebuilding.stalled {
		d.refuse(ctx, b, from)
		return
	}
	if b.owed && !b.due && d.kernel.refusing.Load() {
		ctx.Send(d.kernel.audit, owe{b}) // to apply it would only have every state made anew
		return
	}
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
		case result.Read != nil && (b.step || !b.alone && b.follow == nil):
			d.fail(call, fmt.Errorf("read for %s: its row is not alone", call.Message.Type))
		case result.Read != nil:
			d.read(b, result.Read, begun)
			return
		case result.Wait > 0 && b.follow != nil:
			d.rest(b)
			return
		case result.Wait > 0 && !call.Final:
			d.park(ctx, b, result.Wait)
			return
		case len(result.Steps) > 0:
			if i > 0 {
				d.split(ctx, b, i)
				i = 0
			}
			d.busy = &saga{batch: b, at: i, result: result, begun: begun, epoch: d.epoch}
			d.step(ctx, nil)
			return
		case unanswerable(b, call, &result):
			d.fail(call, fmt.Errorf("begin %s: its row has no outcome, or is not alone", call.Message.Type))
		default:
			b.begun = begun
			d.finish(ctx, call, &result)
		}
		call.Proof.LatencyUS += microseconds(begun)
		b.charge(call)
	}
	d.forward(ctx, b)
}

// unanswerable reports whether a call has an effect that nothing would come of: a bug in the syscall table.
func unanswerable(b *batch, call *kernel.Call, result *kernel.Result) bool {
	return result.Effect != nil && result.Effect.Run != nil && (!b.alone || b.step || b.follow != nil || call.Syscall.Outcome == "")
}

// outcome is what comes of a call: that of its first run, where its idempotency key was used before, else what the state
// machine decides, where the caller may call it.
func (d *domain) outcome(call *kernel.Call, b *batch) (kernel.Result, error) {
	switch {
	case b.step:
		call.Tick = d.kernel.clock.now()
		return d.decide(call)
	case b.follow != nil:
		return d.goOn(call, b.follow)
	}
	if b.until.IsZero() { // else it was let in before it waited
		if err := b.account.admit(call); err != nil {
			return kernel.Result{}, err
		}
	}
	if err := d.kernel.admit(call); err != nil {
		return kernel.Result{}, err
	}
	if call.Syscall.Kind == schema.KindQuery {
		return d.decide(call)
	}
	call.Urgent = call.Syscall.Urgent && call.Caller.PID == kernel.Operator
	if d.kernel.refusing.Load() && (!call.Urgent || d.kernel.spent.Load()) {
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
			result := kernel.Result{Data: first.data}
			if r, ok := d.state.(kernel.Repeater); ok { // the first may not have been answered yet
				result.Effect = r.Repeat(call, first.data)
			}
			return result, nil
		}
	}
	return d.decide(call)
}

func (d *domain) fail(call *kernel.Call, err error) {
	call.Err = schema.AsError(err)
	d.kernel.keys.settle(call)
	if call.Err.Kind == schema.Internal {
		d.log.Error("syscall failed", "call", call, "error", err)
	}
}

// finish gives a call its successful outcome.
func (d *domain) finish(ctx actor.Context, call *kernel.Call, result *kernel.Result) {
	call.Data, call.Effect = result.Data, result.Effect
	d.kernel.keys.settle(call)
	if call.Repeated {
		return
	}
	call.Lasting = result.Lasting
	if result.Tick > call.Tick {
		d.kernel.clock.reach(result.Tick)
		call.Tick = result.Tick
	}
	if call.Syscall.Kind == schema.KindCommand {
		d.state.Apply(call)
		d.hear()
	}
	if result.Shutdown {
		d.kernel.requestShutdown(nil)
	}
	d.wake(ctx, result.Wakes)
}

// split forwards the first n calls of b, so that they stand in the journal before the steps of the one behind them, as
// they were applied. The connection is told that the batch it waits for has become two.
func (d *domain) split(ctx actor.Context, b *batch, n int) {
	head := newBatch()
	head.domain, head.replyTo, head.account = b.domain, b.replyTo, b.account
	head.answers, b.answers = b.answers, 0 // only the calls of head have outcomes
	head.calls = append(head.calls, b.calls[:n]...)
	left := copy(b.calls, b.calls[n:])
	clear(b.calls[left:])
	b.calls = b.calls[:left]
	ctx.Send(b.replyTo, split{head: head, rest: b})
	d.forward(ctx, head)
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

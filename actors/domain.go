package actors

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// domain is the actor that owns a state machine: only it calls Decide and Apply, one call at a time, in the order of its
// mailbox. The steps of a call run before the call, one after another, while later calls wait. A parked call delays no
// other.
type domain struct {
	kernel *Kernel
	name   schema.Domain
	state  kernel.Domain
	log    *slog.Logger
	epoch  uint64 // of the journal that the state was built from

	rebuilding rebuilding
	late       *stepDone // arrived during a rebuild

	queue   []*batch               // batches after a call with steps
	busy    *saga                  // that call
	pended  map[string]*pended     // by connection: calls that wait at the gate
	watched map[schema.Domain]bool // domains of steps that it watches for their death
	parked  map[int64][]*parked    // by the PID of their call, in the order in which they were parked

	watching []*batch // queries of subscriptions without news: any change of the state may be news
	changes  uint64   // number of changes

	news kernel.News // that is not published yet
}

// saga is a call that is decided in slices, or whose steps run.
type saga struct {
	batch  *batch
	at     int // index of the call in the batch
	result kernel.Result
	begun  time.Time
	epoch  uint64          // of the journal in which it began
	awaits schema.Domain   // the domain of the step that runs
	last   *schema.Syscall // the row of the last step in this turn
	uses   bool            // its step uses up the call's approval: the call is decided again after it
}

// published tells a domain that another domain has published a change that its followers may ask about.
type published struct{}

// stepDone tells the domain of a saga that its step was applied, or why it was not.
type stepDone struct {
	saga *saga
	err  *fault.Fault
}

// Receive handles a message, and then the batches that waited for it.
func (d *domain) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *batch:
		if d.busy != nil || d.rebuilding.waits() {
			d.queue = append(d.queue, m)
			return
		}
		d.run(ctx, m, 0)
	case stepDone:
		d.stepDone(ctx, m)
	case *actor.Terminated:
		d.otherDied(ctx, m.Who)
	case *actor.Stopped:
		d.stopped(ctx)
		return
	case *parked:
		d.unpark(ctx, m)
	case published:
		d.stateChanged()
	case wakeUp:
		d.wakeAll(ctx)
	case answeredQuestion:
		d.answered(m.id)
	case exitedProcesses:
		d.passAgain(m.pids)
	case reading:
		d.haveRead(ctx, &m)
	case bound:
		d.queue = append(d.queue, m.batch)
	case hangUp:
		d.hangUp(ctx, m.conn)
	case awaited:
		close(m.done)
	case takeSnapshot:
		d.snapshot(ctx, m.epoch)
	case rebuild:
		d.rebuild(ctx, m.epoch)
	case *replacement:
		d.replace(ctx, m)
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

// run decides the calls of b from the given one on, and forwards b when all have an outcome. It returns early at a call
// that has steps or waits.
func (d *domain) run(ctx actor.Context, b *batch, from int) {
	if !b.sender.ready(ctx, d) {
		return
	}
	if d.rebuilding.stalled {
		b.sender.refuse(ctx, d, from)
		return
	}
	begun := time.Now()
	for i := from; i < len(b.calls); i++ {
		call := &b.calls[i]
		if call.Time == 0 || b.question != "" && !call.Claimed { // a call that waited at the gate gets the present time; a key is claimed once
			call.Time = begun.UnixMilli()
		}
		result, pending, err := d.outcome(call, b)
		switch {
		case pending != nil:
			d.pend(ctx, b, i, pending)
			return
		case err != nil:
			d.fail(call, err)
		case unused(call) && (result.Wait == 0 || call.Final):
			d.use(ctx, b, i, begun)
			return
		case result.Read != nil:
			d.read(b, result.Read, begun)
			return
		case result.Wait > 0 && !call.Final:
			b.sender.park(ctx, d, result.Wait)
			return
		case result.More != nil || len(result.Steps) > 0:
			if i > 0 {
				b.sender.split(ctx, d, i)
				i = 0
			}
			d.busy = &saga{batch: b, at: i, result: result, begun: begun, epoch: d.epoch}
			if result.More != nil {
				d.stepNext(ctx)
			} else {
				d.step(ctx, nil)
			}
			return
		default:
			b.begun = begun
			d.finish(ctx, call, &result)
		}
		now := time.Now()
		call.Proof.LatencyUS += kernel.Microseconds(now.Sub(begun))
		begun = now
		b.sender.charge(call)
	}
	d.forward(ctx, b)
}

// outcome returns the gate's verdict on a call, or what its sender has decided.
func (d *domain) outcome(call *kernel.Call, b *batch) (kernel.Result, *kernel.Pending, error) {
	call.Lapsed = b.question != "" && !time.Now().Before(b.until)
	v := b.sender.admit(d, call)
	if v.Pending != nil {
		return kernel.Result{}, v.Pending, nil
	}
	if b.question != "" { // the time at the gate is not part of the call's own wait
		b.question, b.until = "", time.Time{}
	}
	if v.Fault != nil {
		return kernel.Result{}, nil, v.Fault
	}
	decide := b.sender.decide
	if call.Asks != nil {
		decide = (*domain).explain
	}
	result, err := decide(d, call)
	return result, nil, err
}

// unused reports whether a call takes effect by an approval that is not used up yet.
func unused(call *kernel.Call) bool {
	return call.Approval != nil && call.Approval.Use != nil && !call.Approval.Used && !call.Repeated
}

func (d *domain) fail(call *kernel.Call, err error) {
	call.Err = fault.Of(err)
	d.kernel.keys.Record(call)
	if call.Err.Kind == fault.Internal {
		d.log.Error("syscall failed", "call", call, "error", err)
	}
}

// finish gives a call its successful outcome.
func (d *domain) finish(ctx actor.Context, call *kernel.Call, result *kernel.Result) {
	call.Data, call.Refs, call.Effect = result.Data, result.Refs, result.Effect
	d.kernel.keys.Record(call)
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
		d.stateChanged()
		d.news.Add(result.News)
	}
	if result.Shutdown {
		d.kernel.requestShutdown(nil)
	}
	d.wake(ctx, result.Wakes)
}

// decide calls the state machine. Decide changes nothing, so a panic fails only that call. Only a call that runs alone, and
// whose row has an outcome, may start an effect; others would never be answered. Only a call that runs alone may read.
func (d *domain) decide(call *kernel.Call, alone bool) (result kernel.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			d.log.Error("syscall panicked", "call", call, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("decide %s: panic: %v", call.Message.Type, r)
		}
	}()
	result, err = d.state.Decide(call)
	if err == nil && result.Effect != nil && result.Effect.Run != nil && (!alone || call.Syscall.Outcome == "") {
		err = fmt.Errorf("begin %s: its row has no outcome, or is not alone", call.Message.Type)
	}
	if err == nil && result.Read != nil && !alone {
		err = fmt.Errorf("read for %s: its row is not alone", call.Message.Type)
	}
	return result, err
}

// forward sends a finished batch to the audit log, and then publishes what it changed: the entries of decisions that other
// domains base on it follow its entry.
func (d *domain) forward(ctx actor.Context, b *batch) {
	b.epoch = d.epoch
	ctx.Send(d.kernel.audit, b)
	if d.rebuilding.err == nil { // otherwise the last published state stays until there is one again
		d.publish()
	}
	news := d.news
	d.news = kernel.News{}
	if news.Resumed {
		d.kernel.Answered(kernel.Resumed)
	}
	if news.Exited != nil {
		for name := range d.kernel.states {
			ctx.Send(d.kernel.domains[name], exitedProcesses{news.Exited})
		}
	}
	if news.Callable {
		if grants := d.kernel.domains[schema.Capability]; grants != nil {
			ctx.Send(grants, published{})
		}
	}
	b.sender.forwarded(ctx)
}

// publish makes the applied changes visible to the other domains.
func (d *domain) publish() {
	if p, ok := d.state.(kernel.Publisher); ok {
		p.Publish()
	}
}

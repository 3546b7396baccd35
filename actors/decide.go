package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
)

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

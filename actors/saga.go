package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// step takes the saga under way further: the next slice of its decision, its next step, or, when all are done, the call itself. A
// step that fails fails the call; what its earlier steps did belongs to nobody alive then, and is taken away as after a crash.
func (d *domain) step(ctx actor.Context, failed *fault.Fault) {
	s := d.busy
	call := &s.batch.calls[s.at]
	if (s.epoch != d.epoch || d.rebuilding.stalled) && failed == nil {
		failed = errNotWritten(call) // what its steps did so far may be lost, and this state is another
	}
	if more := s.result.More; failed == nil && more != nil {
		result, err := d.guarded(call, more)
		if err == nil && result.More != nil {
			s.result = result
			d.stepNext(ctx)
			return
		}
		if s.result = result; err != nil {
			failed = fault.Of(err)
		}
	}
	for failed == nil && len(s.result.Steps) > 0 {
		next := s.result.Steps[0]
		if next.Row == s.last { // of so many that they were sliced
			s.last = nil
			d.stepNext(ctx)
			return
		}
		s.last = next.Row
		s.result.Steps = s.result.Steps[1:]
		step, err := d.kernel.step(call, next)
		if err != nil {
			failed = err
			break
		}
		step.account = s.batch.account
		if step.domain != d.name {
			step.saga, step.from, s.awaits = s, ctx.Self(), step.domain
			d.watch(ctx, step.domain)
			ctx.Send(d.kernel.domains[step.domain], &step.batch)
			return // stepDone goes on from here
		}
		failed = d.ownStep(ctx, step)
	}
	d.busy = nil
	if failed == nil && s.uses {
		call.Approval.Used = true
		d.run(ctx, s.batch, s.at)
		return
	}
	if failed != nil {
		d.fail(call, fmt.Errorf("step of %s: %w", call.Message.Type, failed))
	} else {
		d.finish(ctx, call, &s.result)
	}
	call.Proof.LatencyUS += microseconds(time.Since(s.begun))
	s.batch.sender.charge(call)
	d.run(ctx, s.batch, s.at+1)
}

// stepNext takes the saga further in the next turn: others get theirs between two steps.
func (d *domain) stepNext(ctx actor.Context) {
	d.busy.awaits = d.name
	d.kernel.loop.nextTurn(ctx.Self(), stepDone{d.busy, nil})
}

// watch has the named domain tell when it dies, or that it is dead.
func (d *domain) watch(ctx actor.Context, name schema.Domain) {
	if d.watched == nil {
		d.watched = make(map[schema.Domain]bool)
	}
	if !d.watched[name] {
		d.watched[name] = true
		ctx.Watch(d.kernel.domains[name])
	}
}

// otherDied fails the saga that waits for a step of a domain which is dead.
func (d *domain) otherDied(ctx actor.Context, pid *actor.PID) {
	for name := range d.watched {
		if d.kernel.domains[name] != pid {
			continue
		}
		delete(d.watched, name)
		if d.busy != nil && d.busy.awaits == name {
			d.stepDone(ctx, stepDone{d.busy, errInterrupted(d.busy.batch.calls[d.busy.at].Message.Type)})
		}
	}
}

// ownStep runs a step that is this domain's own, at once.
func (d *domain) ownStep(ctx actor.Context, s *step) *fault.Fault {
	call := &s.calls[0]
	s.admit(d, call)
	result, err := s.decide(d, call)
	if err != nil {
		d.fail(call, err)
	} else {
		d.finish(ctx, call, &result)
	}
	call.Proof.LatencyUS = 1
	failed := call.Err
	d.forward(ctx, &s.batch)
	return failed
}

package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// step takes the saga under way further: its next step, or, when all are done, the call itself. A step that fails fails
// the call; what its earlier steps did belongs to nobody alive then, and is taken away as after a crash.
func (d *domain) step(ctx actor.Context, failed *schema.Error) {
	s := d.busy
	call := &s.batch.calls[s.at]
	if (s.epoch != d.epoch || d.rebuilding.stalled) && failed == nil {
		failed = errNotWritten(call) // what its steps did so far may be lost, and this state is another
	}
	for failed == nil && len(s.result.Steps) > 0 {
		next := s.result.Steps[0]
		s.result.Steps = s.result.Steps[1:]
		b, err := d.kernel.stepBatch(ctx.Self(), call, next)
		if err != nil {
			failed = err
			break
		}
		b.account = s.batch.account
		if b.domain != d.name {
			b.saga, s.awaits = s, b.domain
			d.watch(ctx, b.domain)
			d.handOver(ctx) // what the step may have to see
			ctx.Send(d.kernel.domains[b.domain], b)
			return // stepDone goes on from here
		}
		failed = d.ownStep(ctx, b)
	}
	d.busy = nil
	if failed != nil {
		d.fail(call, fmt.Errorf("step of %s: %w", call.Message.Type, failed))
	} else {
		d.finish(ctx, call, &s.result)
	}
	call.Proof.LatencyUS += microseconds(s.begun)
	s.batch.charge(call)
	d.run(ctx, s.batch, s.at+1)
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
			d.stepDone(ctx, stepDone{d.busy, fault.KernelInterrupted.New(
				"the kernel failed while %s was under way: it may or may not have happened", d.busy.batch.calls[d.busy.at].Message.Type)})
		}
	}
}

// ownStep runs a step that is this domain's own, at once.
func (d *domain) ownStep(ctx actor.Context, b *batch) *schema.Error {
	call := &b.calls[0]
	result, err := d.outcome(call, b)
	if err != nil {
		d.fail(call, err)
	} else {
		d.finish(ctx, call, &result)
	}
	call.Proof.LatencyUS = 1
	failed := call.Err
	b.replyTo = nil // who waits is right here
	d.forward(ctx, b)
	d.handOver(ctx) // the next step's domain has to see it
	return failed
}

// stepBatch makes the kernel's own call of a step, with the call that it is for as its cause.
func (k *Kernel) stepBatch(replyTo *actor.PID, cause *kernel.Call, step schema.Request) (*batch, *schema.Error) {
	row := step.Row
	data, err := schema.Marshal(step.Input)
	if err != nil {
		return nil, schema.AsError(err)
	}
	cause.Begun = true
	b := newBatch()
	b.domain, b.replyTo, b.step = row.Domain, replyTo, true
	b.calls = append(b.calls, stepCall(&k.ids, cause, step, row, data))
	return b, nil
}

// stepCall is the call that a step is.
func stepCall(ids *ids, cause *kernel.Call, step schema.Request, row *schema.Syscall, data []byte) kernel.Call {
	return kernel.Call{
		Caller:  kernel.Caller{PID: kernel.Operator, Conn: cause.Caller.Conn},
		Syscall: row,
		Input:   step.Input,
		Origin:  cause.Origin,
		Urgent:  cause.Urgent,
		Time:    time.Now().UnixMilli(),
		Message: schema.Message{
			Kind: row.Kind, Type: row.Type, Data: data,
			Meta: schema.Metadata{
				Present: true, ID: ids.next(), Timestamp: time.Now().UnixMilli(),
				Correlation: cause.Message.Meta.Correlation, Causation: cause.Message.Meta.ID,
			},
		},
	}
}

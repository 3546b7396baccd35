package actors

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// step advances the current saga: the next slice of its decision, its next step, or, after the last step, the call itself.
// A failing step fails the call; what earlier steps did belongs to a process that does not exist, and is removed as after a
// crash.
func (d *domain) step(ctx actor.Context, failed *fault.Fault) {
	s := d.busy
	call := &s.batch.calls[s.at]
	if (s.epoch != d.epoch || d.rebuilding.stalled) && failed == nil {
		failed = errNotWritten(call) // what its steps did may be lost: the state was rebuilt
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
		if next.Row == s.last { // there are so many that they are sliced
			s.last = nil
			d.stepNext(ctx)
			return
		}
		s.last = next.Row
		s.result.Steps = s.result.Steps[1:]
		call.Begun = true
		step, err := d.kernel.step(call.AsCause(), next)
		if err != nil {
			failed = err
			break
		}
		step.calls[0].Holds = call.Holds
		step.account = s.batch.account
		if step.domain != d.name {
			step.saga, step.from, s.awaits = s, ctx.Self(), step.domain
			d.watch(ctx, step.domain)
			ctx.Send(d.kernel.domains[step.domain], &step.batch)
			return // stepDone continues from here
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
	call.Proof.LatencyUS += kernel.Microseconds(time.Since(s.begun))
	s.batch.sender.charge(call)
	d.run(ctx, s.batch, s.at+1)
}

// stepNext advances the saga in the next turn, so that other actors run between two steps.
func (d *domain) stepNext(ctx actor.Context) {
	d.busy.awaits = d.name
	d.kernel.loop.nextTurn(ctx.Self(), stepDone{d.busy, nil})
}

// watch subscribes to the death of the named domain.
func (d *domain) watch(ctx actor.Context, name schema.Domain) {
	if d.watched == nil {
		d.watched = make(map[schema.Domain]bool)
	}
	if !d.watched[name] {
		d.watched[name] = true
		ctx.Watch(d.kernel.domains[name])
	}
}

// otherDied fails the saga that waits for a step of a dead domain.
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

// ownStep runs a step of this domain itself, immediately.
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

// step is a command of the kernel itself. It has no caller; its other fields name the actor that receives its outcome.
type step struct {
	batch
	saga      *saga      // the call that it is a step of
	from      *actor.PID // its domain, told when the step was applied
	note      *actor.PID // the agent to notify when the step is on disk
	ends      *frames    // the intent whose outcome it is
	mustApply bool       // it must take effect: it is retried if its entry is lost
	retrying  bool       // it is being retried: the journal can be written
}

// step returns a command of the kernel itself, with cause as its cause.
func (k *Kernel) step(cause *kernel.Cause, request schema.Request) (*step, *fault.Fault) {
	s := new(step)
	s.sender = s
	return s, k.fill(&s.batch, cause, request)
}

// command sends a step to its domain.
func (k *Kernel) command(cause *kernel.Cause, request schema.Request) *fault.Fault {
	s, err := k.step(cause, request)
	if err == nil {
		k.send(s)
	}
	return err
}

func (k *Kernel) send(s *step) { k.root.Send(k.domains[s.domain], &s.batch) }

// ready postpones a step that must take effect while the journal cannot be written: to apply it would only make every
// domain rebuild its state. It refuses a step of a saga whose earlier steps were lost while it was queued.
func (s *step) ready(ctx actor.Context, d *domain) bool {
	if s.saga != nil && s.saga.epoch != d.epoch {
		s.refuse(ctx, d, 0)
		return false
	}
	if s.mustApply && !s.retrying && d.kernel.refusing.Load() {
		ctx.Send(d.kernel.audit, retryStep{s})
		return false
	}
	return true
}

// admit allows the step: the gate is for calls of clients.
func (s *step) admit(d *domain, call *kernel.Call) kernel.Verdict {
	call.Tick = d.kernel.clock.now()
	return kernel.Verdict{}
}

func (s *step) decide(d *domain, call *kernel.Call) (kernel.Result, error) {
	return d.decide(call, false)
}

func (s *step) refuse(ctx actor.Context, d *domain, from int) {
	if !s.mustApply {
		s.batch.refuse(ctx, d, from)
		return
	}
	s.retrying = false
	ctx.Send(d.kernel.audit, retryStep{s})
}

// forwarded tells the domain of a saga that its step was applied.
func (s *step) forwarded(ctx actor.Context) {
	if s.saga != nil {
		ctx.Send(s.from, stepDone{s.saga, s.calls[0].Err})
	}
}

func (s *step) answer(ctx actor.Context, k *Kernel) {
	if s.note != nil {
		ctx.Send(s.note, noted{s.calls[0].Tick, s.calls[0].Err})
	}
	if s.ends != nil {
		k.runs.ended(s)
	} else if list := s.effects(); list != nil {
		ctx.Send(k.agents, effects{list: list})
	}
}

// outcomeOf returns the intent whose outcome b is; nil if it is none.
func (b *batch) outcomeOf() *frames {
	if s, ok := b.sender.(*step); ok {
		return s.ends
	}
	return nil
}

// retryStep postpones a step until the journal can be written.
type retryStep struct{ step *step }

// LogValue shows the batch in log lines.
func (o retryStep) LogValue() slog.Value { return o.step.LogValue() }

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

// Ask journals a question about a call as an entry of its process, as Note does. It returns false if that fails.
func (k *Kernel) Ask(call *kernel.Call, question schema.Request) bool {
	if k.refusing.Load() {
		return false
	}
	s, err := k.step(call.AsCause(), question)
	if err != nil {
		k.log.Error("question not journaled", "type", question.Row.Type, "error", err)
		return false
	}
	s.calls[0].PID = call.PID
	k.send(s)
	return true
}

// use uses up the approval of the i-th call of b, and then decides the call. Nothing else has changed.
func (d *domain) use(ctx actor.Context, b *batch, i int, begun time.Time) {
	if i > 0 {
		b.sender.split(ctx, d, i)
		i = 0
	}
	use := kernel.Result{Steps: []schema.Request{*b.calls[i].Approval.Use}}
	d.busy = &saga{batch: b, at: i, result: use, begun: begun, epoch: d.epoch, uses: true}
	d.step(ctx, nil)
}

// stepDone continues the saga whose step is done, when the domain has its state.
func (d *domain) stepDone(ctx actor.Context, m stepDone) {
	switch {
	case m.saga != d.busy: // it has failed since
	case d.rebuilding.waits():
		d.late = &m
	default:
		d.step(ctx, m.err)
	}
}

// Note journals a command of the kernel itself that no call caused. It does not wait: its entry precedes that of any later
// call. It may be called until Close. While the journal cannot be written the note is dropped: another failed write would
// make every domain rebuild its state.
func (k *Kernel) Note(step schema.Request) { k.noteOf(kernel.Operator, step) }

// noteOf is Note for an entry that belongs to the process pid.
func (k *Kernel) noteOf(pid int64, step schema.Request) {
	if k.refusing.Load() {
		k.log.Warn("note not journaled: the journal cannot be written", "type", step.Row.Type)
		return
	}
	s, err := k.step(&kernel.Cause{Conn: "kernel", Origin: k.origin}, step)
	if err != nil {
		k.log.Error("note not journaled", "type", step.Row.Type, "error", err)
		return
	}
	if s.calls[0].PID = pid; pid != kernel.Operator {
		if p := k.processes.Process(pid); p != nil {
			s.calls[0].Origin = p.Origin
		}
	}
	k.send(s)
}

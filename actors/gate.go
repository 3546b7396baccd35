package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// pended are frames whose first call waits at the gate, with what their connection has sent since: frames take effect in their order.
type pended struct {
	frames *frames
	behind []*batch
}

// answeredQuestion has the calls pass the gate again that wait for the answer to a question.
type answeredQuestion struct{ id string }

// exitedProcesses has the calls of processes that have ended pass the gate again that wait at it.
type exitedProcesses struct{ pids []int64 }

// Answered has the calls pass the gate again that wait for the answer to a question. It may be called until Close.
func (k *Kernel) Answered(question string) {
	for name := range k.states {
		k.root.Send(k.domains[name], answeredQuestion{question})
	}
}

// Ask journals a question about a call as one of its process, as Note does. It reports false where that cannot be.
func (k *Kernel) Ask(call *kernel.Call, question schema.Request) bool {
	if k.refusing.Load() {
		return false
	}
	cause := kernel.Call{Caller: call.Caller, Origin: call.Origin}
	cause.Message.Meta = call.Message.Meta
	s, err := k.step(&cause, question)
	if err != nil {
		k.log.Error("question not journaled", "type", question.Row.Type, "error", err)
		return false
	}
	s.calls[0].PID = call.PID
	k.send(s)
	return true
}

// Repeats reports whether a call that the gate judges gets the outcome again that its idempotency key has.
func (k *Kernel) Repeats(call *kernel.Call) bool { return k.keys.Repeats(call) }

// budget is the Budget stage: what gets its first outcome again does nothing, and costs nothing.
func (k *Kernel) budget(call *kernel.Call) kernel.Verdict {
	if k.Repeats(call) {
		return kernel.Verdict{}
	}
	return k.budgets.Stage(call)
}

// use has the approval of the i-th call of b used up, and decides the call then: it is all that has changed.
func (d *domain) use(ctx actor.Context, b *batch, i int, begun time.Time) {
	if f, ok := b.sender.(*frames); ok && i > 0 {
		f.split(ctx, d, i)
		i = 0
	}
	use := kernel.Result{Steps: []schema.Request{*b.calls[i].Approval.Use}}
	d.busy = &saga{batch: b, at: i, result: use, begun: begun, epoch: d.epoch, uses: true}
	d.step(ctx, nil)
}

// pend keeps b, whose i-th call waits at the gate, and all that its connection sends after it, until the question is answered.
func (d *domain) pend(ctx actor.Context, b *batch, i int, q *kernel.Pending) {
	if b.question != q.ID {
		b.question, b.until = q.ID, time.Time{}
	}
	if f, ok := b.sender.(*frames); ok {
		if i > 0 {
			f.split(ctx, d, i)
		}
		if d.pended == nil {
			d.pended = make(map[string]*pended)
		}
		d.pended[f.calls[0].Caller.Conn] = &pended{frames: f}
	}
	d.park(ctx, b, q.Wait)
}

// passAgain has the calls of processes decided again that wait at the gate.
func (d *domain) passAgain(pids []int64) {
	for _, pid := range pids {
		if d.parked[pid] == nil {
			continue
		}
		for _, p := range d.take(pid, func(p *parked) bool { return p.batch.question != "" }) {
			d.queue = append(d.queue, p.batch)
		}
	}
}

// answered has the calls decided again that wait for the answer to a question.
func (d *domain) answered(question string) {
	for pid := range d.parked {
		for _, p := range d.take(pid, func(p *parked) bool { return p.batch.question == question }) {
			d.queue = append(d.queue, p.batch)
		}
	}
}

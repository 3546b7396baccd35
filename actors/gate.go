package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema/fault"
)

// pended is a batch whose first call waits at the gate, with what its connection has sent since: frames take effect in their order.
type pended struct {
	batch  *batch
	behind []*batch
}

// answeredQuestion has the calls pass the gate again that wait for the answer to a question.
type answeredQuestion struct{ id string }

// Answered has the calls pass the gate again that wait for the answer to a question. It may be called until Close.
func (k *Kernel) Answered(question string) {
	for _, pid := range k.domains {
		k.root.Send(pid, answeredQuestion{question})
	}
}

// admit is the gate's verdict on a call. Steps are the kernel's own, and nobody's. A question of a subscription goes on for as
// long as its subscriber may still subscribe.
func (d *domain) admit(call *kernel.Call, b *batch) kernel.Verdict {
	switch {
	case b.step:
		call.Tick = d.kernel.clock.now()
		return kernel.Verdict{}
	case b.follow != nil:
		subscribed := b.follow.call
		subscribed.Parked, subscribed.Final, subscribed.Lapsed = true, call.Final, call.Lapsed
		v := d.kernel.gate.Admit(&subscribed)
		call.Tick = subscribed.Tick
		return v
	}
	return d.kernel.gate.Admit(call)
}

// pend keeps b, whose i-th call waits at the gate, and all that its connection sends after it, until the question is answered.
func (d *domain) pend(ctx actor.Context, b *batch, i int, q *kernel.Pending) {
	if i > 0 {
		d.split(ctx, b, i)
	}
	if b.question != q.ID {
		b.question, b.until = q.ID, time.Time{}
	}
	if b.follow == nil {
		if d.pended == nil {
			d.pended = make(map[string]*pended)
		}
		d.pended[b.calls[0].Caller.Conn] = &pended{batch: b}
	}
	d.park(ctx, b, q.Wait)
}

// admitted ends the waiting of b at the gate.
func (b *batch) admitted() {
	if b.question != "" {
		b.question, b.until, b.calls[0].Lapsed = "", time.Time{}, false
	}
}

// waitsBehind reports whether b has to wait until an earlier call of its connection has passed the gate. Where b is what the others
// wait behind, they follow it.
func (d *domain) waitsBehind(b *batch) bool {
	p := d.pended[b.calls[0].Caller.Conn]
	switch {
	case p == nil || b.step || b.follow != nil:
		return false
	case p.batch != b:
		p.behind = append(p.behind, b)
		return true
	}
	delete(d.pended, b.calls[0].Caller.Conn)
	d.queue = slices.Concat(p.behind, d.queue)
	return false
}

// answered has the calls decided again that wait for the answer to a question.
func (d *domain) answered(question string) {
	for pid := range d.parked {
		for _, p := range d.take(pid, func(p *parked) bool { return p.batch.question == question }) {
			d.queue = append(d.queue, p.batch)
		}
	}
}

// admit is the gate's verdict on a query of the audit log's, which does not wait.
func (k *Kernel) admit(call *kernel.Call) *fault.Fault {
	v := k.gate.Admit(call)
	if v.Pending != nil {
		return fault.ApprovalPending.New("%s waits for the approval %s", call.Message.Type, v.Pending.ID)
	}
	return v.Fault
}

package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
)

// pended are frames whose first call waits at the gate, with what their connection has sent since: frames take effect in their order.
type pended struct {
	frames *frames
	behind []*batch
}

// answeredQuestion has the calls pass the gate again that wait for the answer to a question.
type answeredQuestion struct{ id string }

// Answered has the calls pass the gate again that wait for the answer to a question. It may be called until Close.
func (k *Kernel) Answered(question string) {
	for name := range k.states {
		k.root.Send(k.domains[name], answeredQuestion{question})
	}
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

// answered has the calls decided again that wait for the answer to a question.
func (d *domain) answered(question string) {
	for pid := range d.parked {
		for _, p := range d.take(pid, func(p *parked) bool { return p.batch.question == question }) {
			d.queue = append(d.queue, p.batch)
		}
	}
}

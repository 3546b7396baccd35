package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
)

// Repeats reports whether a call repeats an idempotency key, and so gets the first outcome again.
func (k *Kernel) Repeats(call *kernel.Call) bool { return k.keys.Repeats(call) }

// budget is the Budget stage: a repeated call does nothing and costs nothing.
func (k *Kernel) budget(call *kernel.Call) kernel.Verdict {
	if k.Repeats(call) {
		return kernel.Verdict{}
	}
	return k.budgets.Stage(call)
}

// pend keeps b, whose i-th call waits at the gate, and all later frames of its connection, until the question is answered.
func (d *domain) pend(ctx actor.Context, b *batch, i int, q *kernel.Pending) {
	if b.question != q.ID {
		b.question, b.until = q.ID, time.Time{}
	}
	b.sender.pend(ctx, d, i)
	d.park(ctx, b, q.Wait)
}

// passAgain decides the waiting calls of these processes again.
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

// answered decides the calls that wait for a question again.
func (d *domain) answered(question string) {
	for pid := range d.parked {
		for _, p := range d.take(pid, func(p *parked) bool { return p.batch.question == question }) {
			if d.kernel.refers.MayChange(&p.batch.calls[0]) {
				d.bindAgain(p.batch)
				continue
			}
			d.queue = append(d.queue, p.batch)
		}
	}
}

// bindAgain reads the files that a command names again, since they may have changed while the question was open. The batch belongs
// to the goroutine meanwhile.
func (d *domain) bindAgain(b *batch) {
	self, root := d.kernel.domains[d.name], d.kernel.root
	d.kernel.background(func() {
		d.kernel.refers.Again(&b.calls[0])
		root.Send(self, bound{b})
	})
}

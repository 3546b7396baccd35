package actors

import (
	"runtime"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// handover is what a domain has finished and the audit log does not have yet: a list through batch.next, oldest first.
// It goes there in one message, so that the calls of many connections become one write and share one fsync.
type handover struct {
	first, last *batch
	due         bool   // a message that sends it is on its way
	count       uint64 // how often it was sent
	conn        string // who made the last call
	crowded     bool   // and the one before was somebody else's
}

// handOver has a domain send what it has finished. It is a message to itself, so that it stands behind the batches that
// are queued already.
type handOver struct{ yielded bool }

// forward takes a finished batch to those that are to be sent.
func (d *domain) forward(ctx actor.Context, b *batch) {
	h := &d.finished
	b.epoch = d.epoch
	if h.first == nil {
		h.first = b
	} else {
		h.last.next = b
	}
	h.last = b
	conn := b.calls[0].Caller.Conn
	h.conn, h.crowded = conn, conn != h.conn
	if !h.due {
		h.due = true
		ctx.Send(ctx.Self(), handOver{})
	}
}

// gather sends what is finished, where several connections are at work once their readers had a chance to bring what they
// have: that costs a turn of the scheduler, and saves a write for each of them.
func (d *domain) gather(ctx actor.Context, yielded bool) {
	if d.finished.crowded && !yielded {
		runtime.Gosched()
		ctx.Send(ctx.Self(), handOver{yielded: true})
		return
	}
	d.finished.due = false
	d.handOver(ctx)
}

// handOver sends what is finished to the audit log, and lets the other domains see what it changed. In this order: what
// they decide on the strength of it then stands behind it in the journal. The answers wait for both: who has been told of
// a revocation finds it in force.
func (d *domain) handOver(ctx actor.Context) {
	first := d.finished.first
	if first == nil {
		return
	}
	d.finished.first, d.finished.last = nil, nil
	steps := stepsOf(first) // the audit log may be done with the batches before Send returns
	publisher, ok := d.state.(kernel.Publisher)
	if !ok || d.rebuilding.err != nil { // what was published last stands until there is a state again
		ctx.Send(d.kernel.audit, first)
	} else {
		d.finished.count++
		for b := first; b != nil; b = b.next {
			b.publication = d.finished.count
		}
		ctx.Send(d.kernel.audit, first)
		publisher.Publish()
		ctx.Send(d.kernel.audit, published{d.name, d.finished.count})
	}
	for _, s := range steps {
		ctx.Send(s.saga, s.done)
	}
}

// published is a domain's report that the others can see what it handed over up to this count.
type published struct {
	domain schema.Domain
	count  uint64
}

// finishedStep is the report to the domain whose call a step was for.
type finishedStep struct {
	saga *actor.PID
	done stepDone
}

func stepsOf(b *batch) (steps []finishedStep) {
	for ; b != nil; b = b.next {
		if s, ok := b.sender.(*step); ok && s.saga != nil {
			steps = append(steps, finishedStep{s.from, stepDone{s.saga, s.calls[0].Err}})
		}
	}
	return steps
}

// publish lets the other domains see what was applied.
func (d *domain) publish() {
	if p, ok := d.state.(kernel.Publisher); ok {
		p.Publish()
	}
}

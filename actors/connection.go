package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// connection is the actor of one channel. It keeps the order: batches go to their domains in the order of their frames,
// the next one before the last was answered only if both are the same domain's, whose mailbox keeps their order.
type connection struct {
	kernel  *Kernel
	link    Link
	credits *credits
	writer  writer
	stamps  *schema.Stamper

	waiting     []*batch // not sent yet, oldest first
	outstanding []*batch // sent to current, not answered yet, oldest first
	current     schema.Domain
	watched     map[schema.Domain]bool // domains that will tell when they die
	ended       bool                   // the reader has sent its last batch
	gone        bool                   // nobody waits for answers
	done        chan<- struct{}        // closed when the actor has stopped
}

func newConnection(k *Kernel, link Link, done chan<- struct{}) *connection {
	window := newCredits()
	return &connection{
		kernel:  k,
		link:    link,
		credits: window,
		writer:  writer{link: link, credits: window, root: k.root},
		stamps:  schema.NewStamper(),
		watched: make(map[schema.Domain]bool, 1),
		done:    done,
	}
}

// endOfInput follows the last batch of a connection.
type endOfInput struct{}

// gone follows it once nobody is there any more to wait for an answer, or has to be hurried.
type gone struct{}

// flushed tells that a write which had to wait is over.
type flushed struct{ err error }

// Receive handles what the reader, the domains and the writer send.
func (c *connection) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *batch:
		m.replyTo = ctx.Self()
		c.waiting = append(c.waiting, m)
	case *answers:
		c.answered((*batch)(m))
	case split:
		if i := slices.Index(c.outstanding, m.rest); i >= 0 {
			c.outstanding = slices.Insert(c.outstanding, i, m.head)
		}
	case flushed:
		c.writer.resume(m.err)
	case endOfInput:
		c.ended = true
	case gone:
		c.gone = true
		if len(c.outstanding) > 0 && c.outstanding[0].alone {
			ctx.Send(c.kernel.domains[c.current], hangUp{c.outstanding[0].calls[0].Caller.Conn})
		}
	case *actor.Terminated:
		c.domainDied(m.Who)
	case *actor.Started:
		c.writer.self = ctx.Self()
	case *actor.Stopped:
		c.stopped(ctx)
		return
	default:
		return
	}
	c.dispatch(ctx)
	c.writer.flush()
	if c.ended && len(c.waiting) == 0 && len(c.outstanding) == 0 && c.writer.idle() {
		ctx.Stop(ctx.Self())
	}
}

// dispatch sends on what may be sent without running frames out of order.
func (c *connection) dispatch(ctx actor.Context) {
	for len(c.waiting) > 0 {
		b := c.waiting[0]
		if len(c.outstanding) > 0 && (b.domain != c.current || b.alone || c.outstanding[0].alone) {
			return
		}
		c.waiting[0] = nil
		c.waiting = c.waiting[1:]
		if b.domain == local {
			c.write(b)
			continue
		}
		c.send(ctx, b)
	}
	c.waiting = nil // so that its array does not creep
}

// answered takes back the oldest outstanding batch: a domain answers in order.
func (c *connection) answered(b *batch) {
	if len(c.outstanding) == 0 || c.outstanding[0] != b {
		return // answered already, when its domain died
	}
	c.outstanding = c.outstanding[1:]
	if len(c.outstanding) == 0 {
		c.outstanding = nil
	}
	c.write(b)
}

// write encodes the answers of a batch.
func (c *connection) write(b *batch) {
	now := time.Now()
	for i := range b.calls {
		stamp := c.stamps.Next(now)
		stamp.Proof = b.calls[i].Proof
		c.writer.append(&b.calls[i], &stamp)
	}
	c.writer.owe(len(b.calls), b.size)
	b.recycle()
}

// send hands b to its domain.
func (c *connection) send(ctx actor.Context, b *batch) {
	pid := c.kernel.domains[b.domain]
	for _, name := range []schema.Domain{b.domain, schema.Audit} { // both owe the answer
		if !c.watched[name] {
			c.watched[name] = true
			ctx.Watch(c.kernel.domains[name])
		}
	}
	if c.gone && b.alone {
		b.calls[0].Final = true
	}
	c.current = b.domain
	c.outstanding = append(c.outstanding, b)
	ctx.Send(pid, b)
}

// domainDied answers what a dead domain still owed, so that no client waits for ever.
func (c *connection) domainDied(pid *actor.PID) {
	for name := range c.watched {
		if c.kernel.domains[name] == pid {
			delete(c.watched, name) // who calls it again watches it again, and is told at once
		}
	}
	if c.kernel.domains[c.current] != pid && c.kernel.audit != pid {
		return
	}
	for _, b := range c.outstanding {
		// The batch is not ours: the domain may have passed it on. So it is neither changed nor used again.
		lost := newBatch()
		lost.size = b.size
		for i := range b.calls {
			msg := b.calls[i].Message
			lost.calls = append(lost.calls, kernel.Call{
				Message: msg,
				Err:     schema.Errorf(schema.Internal, "the kernel failed while %s was under way: it may or may not have happened", msg.Type),
			})
		}
		c.write(lost)
	}
	c.outstanding = nil
}

// stopped lets go of everybody who waits for this connection, or would remember it.
func (c *connection) stopped(ctx actor.Context) {
	if len(c.outstanding) > 0 && c.outstanding[0].alone { // the connection failed, and nobody waits any more
		ctx.Send(c.kernel.domains[c.current], hangUp{c.outstanding[0].calls[0].Caller.Conn})
	}
	for name := range c.watched {
		ctx.Unwatch(c.kernel.domains[name])
	}
	c.credits.close()
	c.link.Interrupt()
	close(c.done)
}

package actors

import (
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// connection is the actor of one channel. It keeps the order: batches go to their domains in the order of their frames,
// the next one before the last was answered only if both are the same domain's, whose mailbox keeps their order.
type connection struct {
	kernel  *Kernel
	link    Link
	credits *credits
	writer  writer
	stamps  *schema.Stamper

	waiting     []*frames // not sent yet, oldest first
	outstanding []*frames // sent to current, not answered yet, oldest first
	current     schema.Domain
	watched     map[schema.Domain]bool // domains that will tell when they die
	following   []*subscription
	endings     map[endingKey]ending
	ended       bool            // the reader has sent its last batch
	gone        bool            // nobody waits for answers
	waits       context.Context // of the answer to a call that takes long; nil: none was made yet
	giveUp      context.CancelCauseFunc
	done        chan<- struct{} // closed when the actor has stopped
}

func newConnection(k *Kernel, link Link, drawn *drawing, done chan<- struct{}) *connection {
	window := newCredits(drawn)
	return &connection{
		kernel:  k,
		link:    link,
		credits: window,
		writer:  writer{link: link, credits: window, root: k.root, blobs: k.blobs},
		stamps:  schema.NewStamper(),
		watched: make(map[schema.Domain]bool, 1),
		done:    done,
	}
}

// endOfInput follows the last batch of a connection.
type endOfInput struct{}

// gone is the last message of every connection: nobody is there any more to wait for an answer, or has to be hurried.
type gone struct{}

// flushed tells that a write which had to wait is over.
type flushed struct{ err error }

// Receive handles what the reader, the domains and the writer send.
func (c *connection) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *frames:
		m.replyTo = ctx.Self()
		c.waiting = append(c.waiting, m)
	case *answers:
		c.took((*batch)(m))
	case *released:
		c.took((*batch)(m))
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
		c.hungUp()
		if len(c.outstanding) > 0 {
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
	c.follow(ctx)
	c.writer.flush() // it may have had something to say itself
	if c.ended && len(c.waiting) == 0 && len(c.outstanding) == 0 && len(c.following) == 0 && c.writer.idle() {
		c.finish(ctx)
	}
}

// finish ends a connection that has no call in flight. It stays until gone has come, which is sent whatever it does itself.
func (c *connection) finish(ctx actor.Context) {
	if c.gone {
		ctx.Stop(ctx.Self())
		return
	}
	c.link.Interrupt() // so that the goroutine that waits for the peer's end sends it
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

// took takes back what the connection sent, or goes on with.
func (c *connection) took(b *batch) {
	switch s := b.sender.(type) {
	case *question:
		c.followed(s)
	case *frames:
		c.answered(s)
	}
}

// answered takes back an outstanding batch. A domain answers in order, but for calls that need something done outside the
// kernel: the answers behind one of those wait.
func (c *connection) answered(b *frames) {
	if !slices.Contains(c.outstanding, b) {
		return // answered already, when its domain died
	}
	b.answered = true
	for len(c.outstanding) > 0 && c.outstanding[0].answered {
		first := c.outstanding[0]
		c.outstanding = c.outstanding[1:]
		c.write(first)
	}
	if len(c.outstanding) == 0 {
		c.outstanding = nil
	}
}

// write encodes the answers of a batch.
func (c *connection) write(b *frames) {
	now := time.Now()
	for i := range b.calls {
		stamp := c.stamps.Next(now)
		stamp.Proof = b.calls[i].Proof
		c.writer.append(&b.calls[i], &stamp)
		c.lasting(&b.calls[i])
	}
	c.writer.owe(len(b.calls), b.size, b.answers)
	b.recycle()
}

// send hands b to its domain.
func (c *connection) send(ctx actor.Context, b *frames) {
	c.watch(ctx, b.domain)
	if c.gone {
		b.final()
	}
	if b.alone {
		b.ctx = c.context()
	}
	c.current = b.domain
	c.outstanding = append(c.outstanding, b)
	ctx.Send(c.kernel.domains[b.domain], &b.batch)
}

// context is that of calls that take long: it ends with the connection, or once nobody waits there any more.
func (c *connection) context() context.Context {
	if c.waits == nil {
		c.waits, c.giveUp = context.WithCancelCause(context.Background())
		if c.gone {
			c.hungUp()
		}
	}
	return c.waits
}

// hungUp cancels what is being done for this connection outside the kernel.
func (c *connection) hungUp() {
	if c.giveUp != nil {
		c.giveUp(errHungUp)
	}
}

// watch has the named domain and the audit log report when they die: an answer is expected of both.
func (c *connection) watch(ctx actor.Context, domain schema.Domain) {
	for _, name := range []schema.Domain{domain, record} {
		if !c.watched[name] {
			c.watched[name] = true
			ctx.Watch(c.kernel.domains[name])
		}
	}
}

// domainDied answers the calls that a dead domain had not answered.
func (c *connection) domainDied(pid *actor.PID) {
	for name := range c.watched {
		if c.kernel.domains[name] == pid {
			delete(c.watched, name) // a later call watches it again, and is told at once
		}
	}
	c.lost(pid)
	if c.kernel.domains[c.current] != pid && c.kernel.audit != pid {
		return
	}
	for _, b := range c.outstanding {
		if b.answered {
			c.write(b)
			continue
		}
		// The batch is not ours: the domain may have passed it on. So it is neither changed nor used again.
		lost := newFrames()
		lost.size = b.size
		for i := range b.calls {
			msg := b.calls[i].Message
			lost.calls = append(lost.calls, kernel.Call{
				Message: msg,
				Err:     errInterrupted(msg.Type),
			})
		}
		c.write(lost)
	}
	c.outstanding = nil
}

// errInterrupted is what a call is answered that a dead actor had.
func errInterrupted(typ string) *fault.Fault {
	return fault.KernelInterrupted.New("the kernel failed while %s was under way: it may or may not have happened", typ)
}

// stopped releases everything that refers to this connection.
func (c *connection) stopped(ctx actor.Context) {
	c.hungUp()
	if len(c.outstanding) > 0 { // the connection failed, and nobody waits any more
		ctx.Send(c.kernel.domains[c.current], hangUp{c.outstanding[0].calls[0].Caller.Conn})
	}
	c.unfollow(ctx)
	for key := range c.endings {
		c.end(key)
	}
	for name := range c.watched {
		ctx.Unwatch(c.kernel.domains[name])
	}
	close(c.done) // before the reader can end, which would tell this actor
	c.credits.close()
	c.link.Interrupt()
}

package actors

import (
	"context"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/effect/provide"
	"github.com/promptware-os/pwos/effect/refer"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// Receive handles messages of the link and of domains.
func (c *connection) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case poll.Event:
		c.input.readable = c.input.readable || m&poll.In != 0
		c.writer.full = c.writer.full && m&(poll.Out|poll.Hup) == 0 // a write to a peer that has closed fails
		c.hungUp = c.hungUp || m&poll.Hup != 0
		c.take()
	case goOn:
		c.input.again = false
		c.take()
	case hasRoom:
		c.input.awaits = false
		c.take()
	case *made:
		c.input.away, c.input.made = false, m
		c.take()
	case *batch:
		c.resume(m)
	case split:
		if i := slices.Index(c.outstanding, m.rest); i >= 0 {
			c.outstanding = slices.Insert(c.outstanding, i, m.head)
		}
	case *provide.Requested:
		c.requested(m)
	case *progressed:
		c.progressed(m)
	case *spilled:
		c.spilled(m)
	case panicked:
		panic(m.reason)
	case endOfTurn:
		c.writing = false
		c.writer.flush()
		if c.writer.idle() && (c.input.waits() || len(c.following) > 0) {
			c.again()
		}
	case *actor.Terminated:
		c.domainDied(m.Who)
	case *actor.Started:
	case *actor.Stopped:
		c.stopped(ctx)
		return
	default:
		return
	}
	c.advance(ctx)
}

// advance does everything that is possible now. It is called after every change.
func (c *connection) advance(ctx actor.Context) {
	c.dispatch(ctx)
	if c.input.blocked && len(c.waiting) == 0 && len(c.outstanding) == 0 && !c.spilling {
		c.input.blocked = false
		c.again()
	}
	if c.hungUp && !c.drained && (c.input.ended || c.input.waitsForCredits()) {
		c.drained = true
		c.abandon()
		if len(c.outstanding) > 0 {
			ctx.Send(c.kernel.domains[c.current], hangUp{c.caller.Conn})
		}
	}
	c.follow(ctx)
	if c.writer.ready() && !c.writing {
		c.writing = true
		c.kernel.loop.atRest(c.self, endOfTurn{})
	}
	if c.input.ended && len(c.waiting) == 0 && len(c.outstanding) == 0 && len(c.following) == 0 && c.allWritten() && !c.input.again {
		c.over.Store(true)
		ctx.Stop(ctx.Self())
	}
}

// dispatch sends the batches that can be sent without running frames out of order.
func (c *connection) dispatch(ctx actor.Context) {
	for len(c.waiting) > 0 {
		b := c.waiting[0]
		if len(c.outstanding) > 0 && (b.domain != c.current || b.alone || c.outstanding[0].alone) {
			return
		}
		if call := &b.calls[0]; isAttach(call) {
			if c.spilling {
				return // an answer that is not encoded yet may start a subscription
			}
			call.Refused = c.mayAttach()
		}
		c.waiting[0] = nil
		c.waiting = c.waiting[1:]
		if b.domain == local {
			c.encode(b)
			continue
		}
		c.send(ctx, b)
	}
	c.waiting = nil // so that the array does not grow without bound
}

// resume handles a batch that returns, or continues after a message that follows work of this connection.
func (c *connection) resume(b *batch) {
	switch s := b.sender.(type) {
	case *question:
		c.followed(s)
	case *frames:
		c.answered(s)
	}
}

// answered receives an outstanding batch. A domain answers in order, except for calls with an effect outside the kernel:
// later answers wait for such a call.
func (c *connection) answered(b *frames) {
	if !slices.Contains(c.outstanding, b) {
		return // answered already, when its domain died
	}
	b.answered = true
	for len(c.outstanding) > 0 && c.outstanding[0].answered {
		first := c.outstanding[0]
		c.outstanding = c.outstanding[1:]
		c.encode(first)
	}
	if len(c.outstanding) == 0 {
		c.outstanding = nil
	}
}

// encode appends the answers of a batch to the output.
func (c *connection) encode(b *frames) { c.inTurn(func() { c.encodeFrom(b, 0) }) }

func (c *connection) encodeFrom(b *frames, from int) {
	now := time.Now()
	for i := from; i < len(b.calls); i++ {
		call := &b.calls[i]
		stamp := c.stamps.Next(now)
		stamp.Proof, stamp.Refs = call.Proof, call.Refs
		if len(call.Data) > longLine || !c.writer.append(call, &stamp) {
			c.spill(func(s refer.Spill) []byte { return s.Reply(nil, call, &stamp) }, func() {
				c.lasting(call)
				c.changed(call)
				c.encodeFrom(b, i+1)
			})
			return
		}
		c.lasting(call)
		c.changed(call)
	}
	c.writer.addCredits(len(b.calls), b.size, b.answers)
	b.recycle()
}

// send sends b to its domain.
func (c *connection) send(ctx actor.Context, b *frames) {
	c.watch(ctx, b.domain)
	if c.drained {
		b.final()
	}
	if b.alone {
		b.ctx = c.context()
	}
	c.current = b.domain
	c.outstanding = append(c.outstanding, b)
	ctx.Send(c.kernel.domains[b.domain], &b.batch)
}

// context returns the context of calls that take long: it ends with the connection, or when no peer waits for their
// answers.
func (c *connection) context() context.Context {
	if c.waits == nil {
		c.waits, c.giveUp = context.WithCancelCause(context.Background())
		if c.drained {
			c.abandon()
		}
	}
	return c.waits
}

// abandon cancels this connection's work outside the kernel.
func (c *connection) abandon() {
	if c.giveUp != nil {
		c.giveUp(errHungUp)
	}
}

// domainDied answers the calls that a dead domain has not answered.
func (c *connection) domainDied(pid *actor.PID) {
	for name := range c.watched {
		if c.kernel.domains[name] == pid {
			delete(c.watched, name) // a later call watches it again, and gets the news immediately
		}
	}
	c.lost(pid)
	if c.kernel.domains[c.current] != pid && c.kernel.audit != pid {
		return
	}
	for _, b := range c.outstanding {
		if b.answered {
			c.encode(b)
			continue
		}
		// The domain may have passed the batch on, so it must neither be changed nor reused.
		lost := newFrames()
		lost.size = b.size
		for i := range b.calls {
			call := kernel.NewCall(kernel.Request{Message: b.calls[i].Message}, kernel.Undecided)
			call.Err = errInterrupted(call.Message.Type)
			lost.calls = append(lost.calls, call)
		}
		c.encode(lost)
	}
	c.outstanding = nil
}

// stopped releases everything that refers to this connection.
func (c *connection) stopped(ctx actor.Context) {
	c.over.Store(true)
	c.abandon()
	if len(c.outstanding) > 0 { // the connection failed; there is no receiver for its answers
		ctx.Send(c.kernel.domains[c.current], hangUp{c.caller.Conn})
	}
	c.unfollow(ctx)
	for key := range c.endings {
		c.end(key)
	}
	for name := range c.watched {
		ctx.Unwatch(c.kernel.domains[name])
	}
	c.kernel.providers.Unbind(c)
	c.credits.account.close() // the process may have changed since the connection began
	c.kernel.background(c.ended)
}

func newConnection(k *Kernel, link Link, caller kernel.Caller, share *share, ended func()) *connection {
	c := &connection{
		kernel:  k,
		link:    link,
		caller:  caller,
		credits: credits{account: share},
		flight:  flight{watched: make(map[schema.Domain]bool, 1)},
	}
	c.output = output{writer: writer{link: link, credits: &c.credits}, stamps: schema.NewStamper()}
	c.ended = ended
	return c
}

// Serve passes a connection to the loop. ended is called once, on a goroutine, after the peer ended its side and all
// answers are written, or after the link broke. ended closes the link.
func (k *Kernel) Serve(link Link, caller kernel.Caller, ended func()) {
	c := newConnection(k, link, caller, k.accounts.open(caller.PID), ended)
	c.self = k.spawn("connection/"+caller.Conn, c)
	if err := link.Open(k.loop.poller, c.ready); err != nil {
		k.log.Error("connection cannot be watched", "conn", caller.Conn, "error", err)
		k.root.Stop(c.self)
	}
}

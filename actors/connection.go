package actors

import (
	"context"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/poll"
)

// connection is the actor of one channel. It keeps the order: batches go to their domains in the order of their frames,
// the next one before the last was answered only if both are the same domain's, whose mailbox keeps their order.
type connection struct {
	kernel   *Kernel
	link     Link
	caller   kernel.Caller // changes with Process.Attach, while nothing is decoded
	self     *actor.PID
	input    input
	credits  credits
	writer   writer
	stamps   *schema.Stamper
	writing  bool     // the end of the turn writes
	spilling bool     // what does not fit a line is put elsewhere
	unsaid   []func() // what is to be encoded once it is

	waiting     []*frames // not sent yet, oldest first
	outstanding []*frames // sent to current, not answered yet, oldest first
	current     schema.Domain
	watched     map[schema.Domain]bool // domains that will tell when they die
	following   []*subscription
	provides    bool           // it provides a registered syscall
	asked       schema.Dialect // in which it is asked to carry out calls
	endings     map[endingKey]ending
	hungUp      bool            // the peer has gone; what it has sent is taken in all the same
	gone        bool            // and that is done, or waits for answers: nobody else waits for those
	waits       context.Context // of the answer to a call that takes long; nil: none was made yet
	giveUp      context.CancelCauseFunc
	over        atomic.Bool // the actor is about to stop, or has: it is told nothing more
	ended       func()      // called when it has stopped
}

func newConnection(k *Kernel, link Link, caller kernel.Caller, drawn *drawing, ended func()) *connection {
	c := &connection{
		kernel:  k,
		link:    link,
		caller:  caller,
		credits: credits{account: drawn},
		stamps:  schema.NewStamper(),
		watched: make(map[schema.Domain]bool, 1),
		ended:   ended,
	}
	c.writer = writer{link: link, credits: &c.credits}
	return c
}

// ready has the connection told what its link reports.
func (c *connection) ready(e poll.Event) { c.tell(e) }

// tell sends the connection a message, unless it has ended. It is for any goroutine.
func (c *connection) tell(message any) {
	if !c.over.Load() {
		c.kernel.root.Send(c.self, message)
	}
}

// background does what takes long on a goroutine, and has its report sent to the connection. A panic is that connection's failure
// alone.
func (c *connection) background(work func() (report any)) {
	c.kernel.background(func() {
		defer func() {
			if p := recover(); p != nil {
				c.kernel.log.Error("connection panicked", "conn", c.caller.Conn, "panic", p, "stack", string(debug.Stack()))
				c.tell(panicked{p})
			}
		}()
		c.tell(work())
	})
}

// panicked is what became of work in the background.
type panicked struct{ reason any }

// endOfTurn has what was encoded in a turn written.
type endOfTurn struct{}

// Receive handles what the link and the domains send.
func (c *connection) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case poll.Event:
		c.input.readable = c.input.readable || m&poll.In != 0
		c.writer.full = c.writer.full && m&(poll.Out|poll.Hup) == 0 // a peer that has gone takes nothing more, which a write finds out
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
		c.took(m)
	case split:
		if i := slices.Index(c.outstanding, m.rest); i >= 0 {
			c.outstanding = slices.Insert(c.outstanding, i, m.head)
		}
	case *requested:
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

// advance goes on as far as it goes, after anything has changed.
func (c *connection) advance(ctx actor.Context) {
	c.dispatch(ctx)
	if c.input.barred && len(c.waiting) == 0 && len(c.outstanding) == 0 && !c.spilling {
		c.input.barred = false
		c.again()
	}
	if c.hungUp && !c.gone && (c.input.ended || c.input.waitsForCredits()) {
		c.gone = true
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
	if c.input.ended && len(c.waiting) == 0 && len(c.outstanding) == 0 && len(c.following) == 0 && c.said() && !c.input.again {
		c.over.Store(true)
		ctx.Stop(ctx.Self())
	}
}

// said reports whether all answers are written.
func (c *connection) said() bool { return c.writer.idle() && !c.spilling }

// dispatch sends on what may be sent without running frames out of order.
func (c *connection) dispatch(ctx actor.Context) {
	for len(c.waiting) > 0 {
		b := c.waiting[0]
		if len(c.outstanding) > 0 && (b.domain != c.current || b.alone || c.outstanding[0].alone) {
			return
		}
		if call := &b.calls[0]; isAttach(call) {
			if c.spilling {
				return // what is yet to be said may begin a subscription
			}
			call.Refused = c.mayAttach()
		}
		c.waiting[0] = nil
		c.waiting = c.waiting[1:]
		if b.domain == local {
			c.say(b)
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
		c.say(first)
	}
	if len(c.outstanding) == 0 {
		c.outstanding = nil
	}
}

// say encodes the answers of a batch.
func (c *connection) say(b *frames) { c.inTurn(func() { c.sayFrom(b, 0) }) }

// inTurn has something encoded, behind what is put elsewhere first.
func (c *connection) inTurn(encode func()) {
	if c.spilling {
		c.unsaid = append(c.unsaid, encode)
	} else {
		encode()
	}
}

func (c *connection) sayFrom(b *frames, from int) {
	now := time.Now()
	for i := from; i < len(b.calls); i++ {
		call := &b.calls[i]
		stamp := c.stamps.Next(now)
		stamp.Proof, stamp.Refs = call.Proof, call.Refs
		if len(call.Data) > longLine || !c.writer.append(call, &stamp) {
			c.spill(func(s spill) []byte { return s.reply(nil, call, &stamp) }, func() {
				c.lasting(call)
				c.changed(call)
				c.sayFrom(b, i+1)
			})
			return
		}
		c.lasting(call)
		c.changed(call)
	}
	c.writer.owe(len(b.calls), b.size, b.answers)
	b.recycle()
}

// spilled is a line that a goroutine has encoded.
type spilled struct {
	line []byte
	then func()
}

// spill has an answer or an event encoded on a goroutine that is long, or does not fit a line, since that writes files. What is to be
// said after it waits; then goes on.
func (c *connection) spill(encode func(spill) []byte, then func()) {
	c.spilling = true
	s := spill{c.kernel.blobs, c.link.LineLimit()}
	c.background(func() any { return &spilled{encode(s), then} })
}

// spilled goes on with what waited for it.
func (c *connection) spilled(m *spilled) {
	c.spilling = false
	c.writer.appendLine(m.line)
	m.then()
	for len(c.unsaid) > 0 && !c.spilling {
		encode := c.unsaid[0]
		c.unsaid = c.unsaid[1:]
		encode()
	}
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
			c.abandon()
		}
	}
	return c.waits
}

// abandon cancels what is being done for this connection outside the kernel.
func (c *connection) abandon() {
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
			c.say(b)
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
		c.say(lost)
	}
	c.outstanding = nil
}

// errInterrupted is what a call is answered that a dead actor had.
func errInterrupted(typ string) *fault.Fault {
	return fault.KernelInterrupted.New("the kernel failed while %s was under way: it may or may not have happened", typ)
}

// stopped releases everything that refers to this connection.
func (c *connection) stopped(ctx actor.Context) {
	c.over.Store(true)
	c.abandon()
	if len(c.outstanding) > 0 { // the connection failed, and nobody waits any more
		ctx.Send(c.kernel.domains[c.current], hangUp{c.caller.Conn})
	}
	c.unfollow(ctx)
	for key := range c.endings {
		c.end(key)
	}
	for name := range c.watched {
		ctx.Unwatch(c.kernel.domains[name])
	}
	c.kernel.providers.unbind(c)
	c.credits.account.close() // which may be another process's than at first
	c.kernel.background(c.ended)
}

package actors

import (
	"context"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/effect/provide"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/poll"
)

// connection is the actor of one channel. It keeps the order of frames: it sends a batch before the previous one is
// answered only if both go to the same domain, whose mailbox keeps their order.
type connection struct {
	kernel    *Kernel
	link      Link
	caller    kernel.Caller // changes with Process.Attach, while nothing is decoded
	self      *actor.PID
	input     input
	credits   credits
	writer    writer
	stamps    *schema.Stamper
	writing   bool     // the writer flushes at the end of the turn
	spilling  bool     // a goroutine encodes an answer or event and stores its long members as blobs
	unencoded []func() // encodings that wait for the goroutine

	waiting     []*frames // not sent yet, oldest first
	outstanding []*frames // sent to current, not answered yet, oldest first
	current     schema.Domain
	watched     map[schema.Domain]bool // domains whose death it watches
	following   []*subscription
	provides    bool // it provides a registered syscall
	endings     map[endingKey]ending
	hungUp      bool            // the peer has closed both directions; frames that it sent before are still handled
	drained     bool            // all frames are handled, or wait for answers that no client waits for
	waits       context.Context // of calls that take long; nil: none so far
	giveUp      context.CancelCauseFunc
	over        atomic.Bool // the actor is about to stop or has stopped: messages to it are dropped
	ended       func()      // called once it has stopped
}

func newConnection(k *Kernel, link Link, caller kernel.Caller, share *share, ended func()) *connection {
	c := &connection{
		kernel:  k,
		link:    link,
		caller:  caller,
		credits: credits{account: share},
		stamps:  schema.NewStamper(),
		watched: make(map[schema.Domain]bool, 1),
		ended:   ended,
	}
	c.writer = writer{link: link, credits: &c.credits}
	return c
}

// ready sends the connection what its link reports.
func (c *connection) ready(e poll.Event) { c.tell(e) }

// tell sends the connection a message, unless it has ended. Any goroutine may call it.
func (c *connection) tell(message any) {
	if !c.over.Load() {
		c.kernel.root.Send(c.self, message)
	}
}

// background runs slow work on a goroutine, which sends its report to the connection. If it panics, only this
// connection ends.
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

// panicked is the report of work that panicked.
type panicked struct{ reason any }

// endOfTurn requests a write of what this turn has encoded.
type endOfTurn struct{}

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

// allWritten reports whether all answers are written.
func (c *connection) allWritten() bool { return c.writer.idle() && !c.spilling }

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

// inTurn runs an encoding after those that wait for a spill.
func (c *connection) inTurn(encode func()) {
	if c.spilling {
		c.unencoded = append(c.unencoded, encode)
	} else {
		encode()
	}
}

func (c *connection) encodeFrom(b *frames, from int) {
	now := time.Now()
	for i := from; i < len(b.calls); i++ {
		call := &b.calls[i]
		stamp := c.stamps.Next(now)
		stamp.Proof, stamp.Refs = call.Proof, call.Refs
		if len(call.Data) > longLine || !c.writer.append(call, &stamp) {
			c.spill(func(s spill) []byte { return s.reply(nil, call, &stamp) }, func() {
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

// spilled is a line that a goroutine has encoded.
type spilled struct {
	line []byte
	then func()
}

// spill encodes an answer or event on a goroutine because it is long, or does not fit a line and is stored as a blob.
// Later encodings wait until next has run.
func (c *connection) spill(encode func(spill) []byte, then func()) {
	c.spilling = true
	s := spill{c.kernel.blobs, c.link.LineLimit()}
	c.background(func() any { return &spilled{encode(s), then} })
}

// spilled runs the encodings that waited.
func (c *connection) spilled(m *spilled) {
	c.spilling = false
	c.writer.appendLine(m.line)
	m.then()
	for len(c.unencoded) > 0 && !c.spilling {
		encode := c.unencoded[0]
		c.unencoded = c.unencoded[1:]
		encode()
	}
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

// watch subscribes to the death of a domain and of the audit log: both must answer.
func (c *connection) watch(ctx actor.Context, domain schema.Domain) {
	for _, name := range []schema.Domain{domain, appender} {
		if !c.watched[name] {
			c.watched[name] = true
			ctx.Watch(c.kernel.domains[name])
		}
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

// errInterrupted answers a call whose actor died.
func errInterrupted(typ string) *fault.Fault {
	return fault.KernelInterrupted.New("the kernel failed while %s was in flight: it may or may not have happened", typ)
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

// isBarrier reports whether a call is a barrier: later frames are not read until it is answered, since the call changes how
// they are decoded, charged and judged.
func isBarrier(call *kernel.Call) bool { return call.Err == nil && call.Syscall.Barrier }

// isAttach reports whether a call changes the process of its connection.
func isAttach(call *kernel.Call) bool {
	return call.Err == nil && call.Syscall == schema.ProcessAttach.Row()
}

// mayAttach returns why the connection cannot change its process, or nil if it can. All earlier frames are answered.
func (c *connection) mayAttach() *fault.Fault {
	if len(c.following) > 0 || len(c.endings) > 0 || c.provides {
		return fault.ConnectionFollows.New("this connection has subscriptions, unacknowledged mail, or syscalls that it provides, and stays who it is")
	}
	return nil
}

// attached changes the connection's process to the one that an answered attach names. Credits in flight then count for that
// process.
func (c *connection) attached(call *kernel.Call) {
	out, err := schema.ProcessAttach.Decode(call.Data)
	if err != nil {
		panic("attach: the kernel's own reply: " + err.Error())
	}
	c.caller.PID, c.caller.Origin = out.PID, ""
	if via := call.Input.(*schema.AttachInput).Via; via != nil {
		c.caller.Via = *via
	}
	share := c.kernel.accounts.open(out.PID)
	share.add(c.credits.bytes)
	c.credits.account = share
}

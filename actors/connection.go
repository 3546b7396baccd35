package actors

import (
	"context"
	"runtime/debug"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/effect/refer"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// connection is the actor of one channel. It keeps the order of frames: it sends a batch before the previous one is
// answered only if both go to the same domain, whose mailbox keeps their order.
type connection struct {
	kernel  *Kernel
	link    Link
	caller  kernel.Caller // changes with Process.Attach, while nothing is decoded
	self    *actor.PID
	input   input
	credits credits
	output
	flight
	standing
	closing
}

// output is the sending half of a connection: it encodes answers and events in their order.
type output struct {
	writer    writer
	stamps    *schema.Stamper
	writing   bool     // the writer flushes at the end of the turn
	spilling  bool     // a goroutine encodes an answer or event and stores its long members as blobs
	unencoded []func() // encodings that wait for the goroutine
}

// flight is what a connection has sent to domains, or will.
type flight struct {
	waiting     []*frames // not sent yet, oldest first
	outstanding []*frames // sent to current, not answered yet, oldest first
	current     schema.Domain
	watched     map[schema.Domain]bool // domains whose death it watches
}

// standing is what lasts as long as a connection.
type standing struct {
	following []*subscription
	endings   map[endingKey]ending
	provides  bool // a registered syscall
}

// closing is how a connection ends.
type closing struct {
	hungUp  bool            // the peer has closed both directions; frames that it sent before are still handled
	drained bool            // all frames are handled, or wait for answers that no client waits for
	waits   context.Context // of calls that take long; nil: none so far
	giveUp  context.CancelCauseFunc
	over    atomic.Bool // the actor is about to stop or has stopped: messages to it are dropped
	ended   func()      // called once it has stopped
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

// inTurn runs an encoding after those that wait for a spill.
func (c *connection) inTurn(encode func()) {
	if c.spilling {
		c.unencoded = append(c.unencoded, encode)
	} else {
		encode()
	}
}

// spilled is a line that a goroutine has encoded.
type spilled struct {
	line []byte
	then func()
}

// spill encodes an answer or event on a goroutine because it is long, or does not fit a line and is stored as a blob.
// Later encodings wait until next has run.
func (c *connection) spill(encode func(refer.Spill) []byte, then func()) {
	c.spilling = true
	s := refer.Spill{Blobs: c.kernel.blobs, Limit: c.link.LineLimit()}
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

// watch subscribes to the death of a domain and of the audit log: both must answer.
func (c *connection) watch(ctx actor.Context, domain schema.Domain) {
	for _, name := range []schema.Domain{domain, appender} {
		if !c.watched[name] {
			c.watched[name] = true
			ctx.Watch(c.kernel.domains[name])
		}
	}
}

// isBarrier reports whether a call is a barrier: later frames are not read until it is answered, since the call changes how
// they are decoded, charged and judged.
func isBarrier(call *kernel.Call) bool { return call.Err == nil && call.Syscall.Barrier }

// input is the receiving half of a connection: it takes lines from the link, decodes them, and batches calls that arrived
// together and go to the same domain.
type input struct {
	readable bool // the link may have more
	again    bool // the next turn continues to read
	awaits   bool // hasRoom follows when the account has room
	ended    bool // no further input will arrive

	line    []byte // decoded next, once there are credits, or nil
	tooLong bool   // the line waiting for credits was too long
	away    bool   // a goroutine decodes a line
	made    *made  // decoded by a goroutine, and waits for credits for the content of its blob

	blocked bool // a barrier call is not answered yet: nothing is read until it is

	batch *frames // being filled; nil: empty
	text  []byte  // holds the lines of a burst
}

// made is a call that a goroutine decoded.
type made struct {
	call   kernel.Call
	answer bool // whether it is answered
	size   int  // credits of its line, in bytes
}

// following is a domain's part of a subscription: the process that it acts for.
type following struct {
	call kernel.Call // that subscribed, without its outcome
	over atomic.Bool // the subscription has ended: undecided questions are dropped
}

// subscription is a call that continues after its answer (kernel.Lasting). The connection asks its domain for more when
// everything pushed before is written, one question at a time: what a peer does not read stays in the domain, and at most
// one answer is in flight.
type subscription struct {
	*following
	next     schema.Request
	end      *endingKey // the command to run at its end; nil: none
	underway bool
}

// maxFollowing bounds the subscriptions of a connection, and with them its memory.
const maxFollowing = 64

// ending is a command that runs at the end of a connection.
type ending struct {
	cause kernel.Cause
	step  schema.Request
}

// endingKey identifies an ending: a later one with the same key replaces it.
type endingKey struct {
	typ string
	pid int64
}

// goOn tells a connection to continue with its input: it has credits again, or a new turn has started.
type goOn struct{}

// hasRoom tells a connection that its agent's account may have room.
type hasRoom struct{}

// longLine bounds, in bytes, what the loop itself decodes as a line and encodes as an answer, which takes a fraction of a
// millisecond.
const longLine = 64 << 10

// again continues in the next turn.
func (c *connection) again() {
	if !c.input.again {
		c.input.again = true
		c.kernel.loop.nextTurn(c.self, goOn{})
	}
}

// waits reports whether there is input to handle once there are credits.
func (in *input) waits() bool {
	return in.waitsForCredits() || in.readable && !in.ended
}

// waitsForCredits reports whether a line waits for an answer to free credits.
func (in *input) waitsForCredits() bool { return in.line != nil || in.tooLong || in.made != nil }

// allWritten reports whether all answers are written.
func (c *connection) allWritten() bool { return c.writer.idle() && !c.spilling }

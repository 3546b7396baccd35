package actors

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// input is a connection's way in: it takes lines from the link, decodes them, and gathers those that came together and go the
// same way.
type input struct {
	readable bool // the link may have more
	again    bool // the next turn goes on
	awaits   bool // the account tells when it has room
	ended    bool // nothing will come any more

	line    []byte // waits for credits; nil: none does
	tooLong bool   // one does that was too long
	away    bool   // one is decoded on a goroutine
	made    *made  // one is decoded, and waits for credits for what it brought by reference

	barred bool // nothing is taken in until a call that bars the way is answered

	batch *frames // gathered, not sent yet; nil: nothing
	text  []byte  // where the lines of a burst are kept
}

// longLine is what a line may have, in bytes, to be decoded on the loop, and what data an answer, to be encoded there. It takes a fraction of a millisecond.
const longLine = 64 << 10

// made is a call that was made of a line on a goroutine.
type made struct {
	call   kernel.Call
	answer bool // it gets one
	size   int  // bytes that it has taken: those of its line
}

// waits reports whether there is something to take in once there are credits.
func (in *input) waits() bool {
	return in.waitsForCredits() || in.readable && !in.ended
}

// waitsForCredits reports whether there is a line that cannot be taken in before something is answered.
func (in *input) waitsForCredits() bool { return in.line != nil || in.tooLong || in.made != nil }

// goOn has a connection take in what it can: there are credits again, or it is its turn.
type goOn struct{}

// take takes in what has been received, as far as there are credits. It reads from the link once, as far as anything came.
func (c *connection) take() {
	in := &c.input
	for filled, over := false, false; !in.ended && !in.away && !in.barred; {
		if !c.takeMade() {
			break
		}
		line, tooLong, ok := in.line, in.tooLong, in.line != nil || in.tooLong
		if !ok {
			var err error
			line, ok, err = c.link.Next()
			tooLong = errors.Is(err, schema.ErrLineTooLong)
			if err != nil && !tooLong {
				in.ended = true
				c.hungUp = c.hungUp || !errors.Is(err, io.EOF) // else the peer has ended its side, and may read on
				break
			}
		}
		if !ok {
			if in.readable && filled {
				c.again() // so that no connection has the loop for long
				break
			}
			if !in.readable && over {
				break
			}
			over = !in.readable // a last Fill gives back the buffer that the lines were in
			filled, in.readable = true, c.link.Fill()
			continue
		}
		if !c.credits.take(len(line)) {
			in.line, in.tooLong = line, tooLong
			c.await(len(line))
			break
		}
		in.line, in.tooLong = nil, false
		c.takeLine(line, tooLong)
	}
	c.sendBatch()
	if !in.readable {
		in.text = nil
	}
}

// takeLine makes a call of a line that has its credits.
func (c *connection) takeLine(line []byte, tooLong bool) {
	size := len(line)
	if tooLong {
		call := kernel.Call{Caller: c.caller, Err: schema.TooLong(c.link.LineLimit())}
		call.Message.Dialect = c.link.Dialect()
		c.gather(&call, size)
		return
	}
	if size > longLine {
		line = slices.Clone(line)
		c.decodeAway(func() made {
			call, answer := c.decode(line)
			if answer {
				c.kernel.bring(&call)
				c.kernel.checkCode(&call)
			}
			return made{call, answer, size}
		})
		return
	}
	call, answer := c.decode(c.input.keep(line))
	switch {
	case !answer:
		c.credits.give(1, size, 0)
	case brings(subject(&call)) != nil, codeOf(subject(&call)) != nil:
		bringing := call // a copy, so that other calls stay off the heap
		c.decodeAway(func() made {
			c.kernel.bring(&bringing)
			c.kernel.checkCode(&bringing)
			return made{bringing, true, size}
		})
	default:
		c.gather(&call, size)
	}
}

// decode makes a call of a line, or of the fault that stood in its place. It returns false for a frame that gets no answer: a
// valid event.
func (c *connection) decode(line []byte) (call kernel.Call, answer bool) {
	call.Caller = c.caller
	call.Message, call.Err = schema.Decode(line, c.link.Dialect())
	if err := call.Message.Shorten(c.link.LineLimit()); err != nil {
		call.Err = err
	}
	switch {
	case call.Err != nil:
		return call, true
	case call.Message.Kind == schema.KindEvent:
		return call, false
	}
	c.kernel.read(&call)
	c.complete(&call)
	return call, true
}

// decodeAway has a call made on a goroutine, since that takes long: the line is, or it brings something by reference, which has to
// be read. Nothing more is taken in meanwhile.
func (c *connection) decodeAway(decode func() made) {
	c.sendBatch()
	c.input.away = true
	c.background(func() any {
		r := new(made)
		defer func() {
			if p := recover(); p != nil {
				c.kernel.log.Error("frame panicked", "conn", c.caller.Conn, "panic", p, "stack", string(debug.Stack()))
				r.call.Err, r.answer = fault.Of(fmt.Errorf("decode: panic: %v", p)), true
			}
		}()
		*r = decode()
		c.kernel.prepare(&r.call)
		return r
	})
}

// takeMade takes what a goroutine has made of a line. It returns false where that has to wait for credits.
func (c *connection) takeMade() bool {
	r := c.input.made
	if r == nil {
		return true
	}
	if !r.answer {
		c.credits.give(1, r.size, 0)
		c.input.made = nil
		return true
	}
	if more := len(subject(&r.call).Message.Data) - r.size; more > 0 { // brought by reference
		if !c.credits.grow(more) {
			return false // whatever is answered has it tried again
		}
		r.size += more
	}
	c.gather(&r.call, r.size)
	c.input.made = nil
	return true
}

// hasRoom tells a connection that its agent's account may have room.
type hasRoom struct{}

// await has the connection try again once its agent has credits. Those of its own come back with an answer.
func (c *connection) await(size int) {
	if c.input.awaits || !c.credits.open(size) {
		return
	}
	c.input.awaits = true
	c.credits.account.await(size, func() {
		if !c.over.Load() {
			c.kernel.loop.nextTurn(c.self, hasRoom{})
		}
	})
}

// again has the next turn go on.
func (c *connection) again() {
	if !c.input.again {
		c.input.again = true
		c.kernel.loop.nextTurn(c.self, goOn{})
	}
}

// gather adds call to the batch, after sending what it cannot join.
func (c *connection) gather(call *kernel.Call, size int) {
	to := way(call)
	alone := call.Syscall != nil && runsAlone(call)
	if b := c.input.batch; b != nil && (len(b.calls) == maxBatch || b.domain != to || b.alone || alone) {
		c.sendBatch()
	}
	if c.input.batch == nil {
		c.input.batch = newFrames()
		c.input.batch.domain, c.input.batch.alone, c.input.batch.account = to, alone, c.credits.account
	}
	b := c.input.batch
	b.calls = append(b.calls, *call)
	b.size += size
	c.input.barred = bars(call)
}

// runsAlone reports whether nothing else of a connection may be under way beside a call: its row says so, or it takes long because
// of what it asks for.
func runsAlone(call *kernel.Call) bool {
	in, ok := call.Input.(interface{ TakesLong() bool })
	return call.Syscall.Alone || ok && in.TakesLong() || call.Asks != nil && call.Asks.Syscall == schema.SyscallInvoke.Row()
}

// sendBatch has what is gathered go its way.
func (c *connection) sendBatch() {
	if b := c.input.batch; b != nil {
		c.input.batch = nil
		b.replyTo = c.self
		c.waiting = append(c.waiting, b)
	}
}

// read finds out what a call's message asks for. It fills in the error where that is nothing.
func (k *Kernel) read(call *kernel.Call) {
	request := call.Message.Request
	if call.Caller.Kernel {
		request = call.Message.OwnRequest
	}
	call.Syscall, call.Input, call.Err = request()
	if in, ok := call.Input.(*schema.CheckInput); ok && call.Err == nil && call.Probe == nil && in.Data != nil {
		call.Asks = k.asked(call, in)
	}
	switch in, ok := call.Input.(*schema.CallInput); {
	case call.Err != nil && call.Err.ID == fault.WireUnknownSyscall && k.registered(call, nil, call.Message.Type) != nil:
		call.Syscall, call.Input, call.Err = call.Message.Registered()
	case call.Err == nil && ok:
		if path, ok := schema.ToolPath(in.Syscall); ok {
			if r := k.registered(call, in.PID, path); r != nil {
				call.Syscall, call.Input, call.Err = call.Message.Provided(in, r)
			}
		}
	}
}

// registered returns what is registered under a name in the origin of a caller, or of the process that the operator acts as; nil
// where nothing is.
func (k *Kernel) registered(call *kernel.Call, as *int64, name string) *schema.Registration {
	if k.registry == nil {
		return nil
	}
	caller := call.Caller
	if as != nil && caller.PID == kernel.Operator {
		caller.PID = *as
	}
	origin := k.originOf(&caller)
	if chosen := call.Message.Meta.Origin; chosen != "" && caller.PID == kernel.Operator {
		if normal, err := k.readOrigin(chosen); err == nil {
			origin = normal
		}
	}
	return k.registry.Registered(origin, name)
}

// bring reads what a call brings by reference, which takes long.
func (k *Kernel) bring(call *kernel.Call) {
	call = subject(call)
	if in := brings(call); in != nil {
		call.Err = k.inline(call, in)
	}
}

// keep copies line to where a call may alias it, since its buffer is read into again. A lone line gets what it needs,
// the lines of a burst share.
func (in *input) keep(line []byte) []byte {
	const shared = 4 << 10
	if cap(in.text)-len(in.text) < len(line) {
		size := len(line)
		if in.text != nil {
			size = max(size, shared)
		}
		in.text = make([]byte, 0, size)
	}
	begin := len(in.text)
	in.text = append(in.text, line...)
	return in.text[begin:len(in.text):len(in.text)]
}

// way is where a call goes.
func way(call *kernel.Call) schema.Domain {
	switch asked := call.Asks; {
	case call.Err != nil:
		return local
	case asked != nil && asked.Err == nil:
		return asked.Syscall.Domain // whose handler is asked
	}
	return call.Syscall.Domain
}

package actors

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"

	"github.com/promptware-os/pwos/effect/provide"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// take handles received lines while there are credits. It reads from the link once.
func (c *connection) take() {
	in := &c.input
	for filled, over := false, false; !in.ended && !in.away && !in.blocked; {
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
				c.hungUp = c.hungUp || !errors.Is(err, io.EOF) // otherwise the peer has only ended its side, and may still read
				break
			}
		}
		if !ok {
			if in.readable && filled {
				c.again() // so that no connection keeps the loop busy for long
				break
			}
			if !in.readable && over {
				break
			}
			over = !in.readable // a last Fill releases the buffer that had the lines
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

// takeLine decodes a line that has its credits.
func (c *connection) takeLine(line []byte, tooLong bool) {
	size := len(line)
	if tooLong {
		call := kernel.NewCall(kernel.Request{Caller: c.caller}, kernel.Undecided)
		call.Err = schema.TooLong(c.link.LineLimit())
		call.Message.Dialect = c.link.Dialect()
		c.addToBatch(&call, size)
		return
	}
	if size > longLine {
		line = slices.Clone(line)
		c.decodeAway(func() made {
			call, answer := c.decode(line)
			if answer {
				c.readReferences(&call)
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
	case c.kernel.refers.Needs(subject(&call)), provide.AnswersByRef(&call), codeOf(subject(&call)) != nil:
		referred := call // a copy, so that other calls stay off the heap
		c.decodeAway(func() made {
			c.readReferences(&referred)
			c.kernel.checkCode(&referred)
			return made{referred, true, size}
		})
	default:
		c.addToBatch(&call, size)
	}
}

// decode returns the call of a line, or the call that fails with a decoding fault. answer is false for a valid event, which
// is not answered.
func (c *connection) decode(line []byte) (call kernel.Call, answer bool) {
	call.Caller = c.caller
	call.Message, call.Err = schema.DecodeRequest(line, c.link.Dialect(), c.link.LineLimit())
	switch {
	case call.Err != nil:
		return call, true
	case call.Message.Kind == schema.KindEvent:
		return call, false
	}
	c.kernel.read(&call)
	c.provide(&call)
	return call, true
}

// decodeAway runs a slow decode on a goroutine: of a long line, or of a call that refers to a blob. The connection reads no
// input meanwhile.
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

// takeMade batches what a goroutine has decoded. It returns false if that must wait for credits.
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
	if more := len(subject(&r.call).Message.Data) - r.size; more > 0 { // read from a blob
		if !c.credits.grow(more) {
			return false // tried again after the next answer
		}
		r.size += more
	}
	c.addToBatch(&r.call, r.size)
	c.input.made = nil
	return true
}

// await retries when the agent's account has room. The connection's own credits return with an answer, after which it
// retries too.
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

// addToBatch adds a call to the batch, after sending a batch that it cannot join.
func (c *connection) addToBatch(call *kernel.Call, size int) {
	if call.Err != nil {
		c.credits.account.malformed(size)
	}
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
	c.input.blocked = isBarrier(call)
}

// sendBatch queues the batch for dispatch.
func (c *connection) sendBatch() {
	if b := c.input.batch; b != nil {
		c.input.batch = nil
		b.replyTo, b.from = c.self, c
		c.waiting = append(c.waiting, b)
	}
}

// keep copies a line that a call may alias, since its buffer is reused. A single line gets its own memory; the lines of a
// burst share some.
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

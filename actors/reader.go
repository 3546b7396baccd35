package actors

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// reader is the goroutine side of a connection: it decodes lines, gathers those that came together and go the same
// way, and sends them to the connection's actor.
type reader struct {
	kernel  *Kernel
	link    Link
	caller  kernel.Caller
	credits *credits
	root    *actor.RootContext
	self    *actor.PID

	batch *frames // gathered, not sent yet
	text  []byte  // where the lines of a burst are kept
}

// run reads until the link ends or is interrupted. It waits, for input or for credits, only when everything it has
// read is on its way.
func (r *reader) run() {
	r.batch = newFrames()
	defer func() {
		r.send()
		r.batch.recycle()
	}()
	for {
		line, ok, err := r.link.TryNext()
		if !ok {
			r.sendLast()
			r.text = nil
			line, err = r.link.Next()
		}
		tooLong := errors.Is(err, schema.ErrLineTooLong)
		if err != nil && !tooLong {
			return
		}
		if !r.credits.tryTake(len(line)) {
			r.send()
			if !r.credits.take(len(line)) {
				return
			}
		}
		call, answer := r.call(line, tooLong)
		if !answer {
			r.credits.give(1, len(line), 0)
			continue
		}
		size := len(line)
		if more := len(call.Message.Data) - size; more > 0 { // it has brought something by reference
			size += more
			if r.send(); !r.credits.grow(more) {
				return
			}
		}
		r.gather(&call, size)
	}
}

// gather adds call to the batch, after sending what it cannot join.
func (r *reader) gather(call *kernel.Call, size int) {
	to := way(call)
	alone := call.Syscall != nil && runsAlone(call)
	if b := r.batch; len(b.calls) == maxBatch || (len(b.calls) > 0 && (b.domain != to || b.alone || alone)) {
		r.send()
	}
	r.batch.domain, r.batch.alone = to, alone
	r.batch.calls = append(r.batch.calls, *call)
	r.batch.size += size
	r.batch.account = r.credits.account
}

// runsAlone reports whether nothing else of a connection may be under way beside a call: its row says so, or it takes long because
// of what it asks for.
func runsAlone(call *kernel.Call) bool {
	in, ok := call.Input.(interface{ TakesLong() bool })
	return call.Syscall.Alone || ok && in.TakesLong()
}

func (r *reader) send() {
	if len(r.batch.calls) == 0 {
		return
	}
	full := r.batch
	r.batch = newFrames()
	r.root.Send(r.self, full)
}

// sendLast is send for a reader that has nothing else to do until more is received. Where a command waits for the disk, so does its client:
// the reader offers itself to sync, so that no other goroutine has to be woken. One with queries alone goes back to its
// client, which is answered sooner.
func (r *reader) sendLast() {
	if r.kernel.lends && r.batch.commands() {
		r.batch.lend = r.kernel.committer.Lend()
	}
	lent := r.batch.lend != 0
	r.send()
	if lent {
		r.kernel.committer.Return()
	}
}

// call makes a call of a line, or of the fault that stood in its place. It returns false for a frame that gets no
// answer: a valid event.
func (r *reader) call(line []byte, tooLong bool) (call kernel.Call, answer bool) {
	call.Caller = r.caller
	if tooLong {
		call.Message.Dialect = r.link.Dialect()
		call.Err = schema.TooLong(r.link.LineLimit())
		return call, true
	}
	call.Message, call.Err = schema.Decode(r.keep(line), r.link.Dialect())
	if err := call.Message.Shorten(r.link.LineLimit()); err != nil {
		call.Err = err
	}
	switch {
	case call.Err != nil:
		return call, true
	case call.Message.Kind == schema.KindEvent:
		return call, false
	}
	r.kernel.read(&call)
	return call, true
}

// read finds out what a call's message asks for. It fills in the error where that is nothing.
func (k *Kernel) read(call *kernel.Call) {
	request := call.Message.Request
	if call.Caller.Kernel {
		request = call.Message.OwnRequest
	}
	call.Syscall, call.Input, call.Err = request()
	if in, ok := call.Input.(schema.Referring); ok && call.Err == nil {
		call.Err = k.inline(call, in)
	}
}

// keep copies line to where a call may alias it, since its buffer is read into again. A lone line gets what it needs,
// the lines of a burst share.
func (r *reader) keep(line []byte) []byte {
	const shared = 4 << 10
	if cap(r.text)-len(r.text) < len(line) {
		size := len(line)
		if r.text != nil {
			size = max(size, shared)
		}
		r.text = make([]byte, 0, size)
	}
	begin := len(r.text)
	r.text = append(r.text, line...)
	return r.text[begin:len(r.text):len(r.text)]
}

// way is where a call goes.
func way(call *kernel.Call) schema.Domain {
	if call.Err != nil {
		return local
	}
	return call.Syscall.Domain
}

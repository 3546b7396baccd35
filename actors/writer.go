package actors

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// writer is a connection's way out. It belongs to the connection actor and never makes it wait: what the peer does not
// take at once is written by a goroutine of its own, while further answers gather behind it.
type writer struct {
	link    Link
	credits *credits
	root    *actor.RootContext
	self    *actor.PID
	blobs   Blobs          // nil: there are none
	busy    sync.WaitGroup // the goroutine

	buf     *[]byte // encoded, not given to the link; nil when there is nothing
	frames  int     // whose answers are in buf, with the bytes read for them
	bytes   int
	answers int  // bytes of their outcomes that are charged to the account
	writing bool // the goroutine is at it
	sent    int  // credits to give back when it is done
	sentIn  int
	sentOut int
	err     error // the link is broken; answers go nowhere from here on
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// maxPooled keeps one huge answer from staying in memory for ever.
const maxPooled = 64 << 10

// append encodes the answer to call.
func (w *writer) append(call *kernel.Call, stamp *schema.Stamp) {
	if w.buf == nil {
		w.buf = buffers.Get().(*[]byte)
	}
	begin := len(*w.buf)
	if call.Err != nil {
		*w.buf = schema.AppendError(*w.buf, &call.Message, call.Err, stamp)
		if len(*w.buf)-begin-1 > w.link.LineLimit() {
			*w.buf = schema.AppendError((*w.buf)[:begin], &call.Message, schema.Brief(call.Err), stamp)
		}
		return
	}
	*w.buf = schema.AppendReply(*w.buf, &call.Message, call.Data, stamp)
	if over := len(*w.buf) - begin - 1 - w.link.LineLimit(); over > 0 {
		*w.buf = (*w.buf)[:begin]
		w.refer(call, stamp, over)
	}
}

// push encodes an event of the subscription that call made. What does not fit a line and cannot be kept beside it is pushed
// as it is: nobody asks for an event again.
func (w *writer) push(call *kernel.Call, e *kernel.Event, stamp *schema.Stamp) {
	if w.buf == nil {
		w.buf = buffers.Get().(*[]byte)
	}
	meta := schema.Metadata{Causation: e.Causation, Correlation: e.Correlation}
	begin := len(*w.buf)
	*w.buf = schema.AppendEvent(*w.buf, call.Message.Dialect, e.Type, e.Data, meta, stamp)
	over := len(*w.buf) - begin - 1 - w.link.LineLimit()
	if over <= 0 {
		return
	}
	if short, refs, err := w.elsewhere(call, e.Data, over); err == nil {
		stamp.Refs = refs
		*w.buf = schema.AppendEvent((*w.buf)[:begin], call.Message.Dialect, e.Type, short, meta, stamp)
	}
}

// owe notes the credits that the next flush gives back.
func (w *writer) owe(frames, bytes, answers int) {
	w.frames += frames
	w.bytes += bytes
	w.answers += answers
}

// flush writes what there is, as far as the peer takes it without waiting.
func (w *writer) flush() {
	if w.writing || w.buf == nil {
		return
	}
	out := *w.buf
	n := len(out)
	if w.err == nil {
		var err error
		n, err = w.link.TryWrite(out)
		w.fail(err)
	}
	if n == len(out) || w.err != nil {
		w.recycle(w.buf)
		w.credits.give(w.frames, w.bytes, w.answers)
	} else {
		w.writing = true
		w.sent, w.sentIn, w.sentOut = w.frames, w.bytes, w.answers
		buf := w.buf
		w.busy.Go(func() {
			_, err := w.link.Write((*buf)[n:])
			w.recycle(buf)
			w.root.Send(w.self, flushed{err})
		})
	}
	w.buf, w.frames, w.bytes, w.answers = nil, 0, 0, 0
}

// resume takes the report of the goroutine.
func (w *writer) resume(err error) {
	w.writing = false
	w.fail(err)
	w.credits.give(w.sent, w.sentIn, w.sentOut)
}

// fail notes an error of the link, and has the reader stop: further frames could not be answered.
func (w *writer) fail(err error) {
	if err != nil && w.err == nil {
		w.err = err
		w.link.Interrupt()
	}
}

func (w *writer) idle() bool { return !w.writing && w.buf == nil }

func (w *writer) recycle(buf *[]byte) {
	if cap(*buf) > maxPooled {
		return
	}
	*buf = (*buf)[:0]
	buffers.Put(buf)
}

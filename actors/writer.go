package actors

import (
	"sync"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// writer is a connection's way out. It never waits: what the peer does not take at once stays, and further answers gather behind
// it until the link is ready for more.
type writer struct {
	link    Link
	credits *credits

	buf     *[]byte // encoded, not written; nil when there is nothing
	written int     // bytes of buf that are written
	full    bool    // the link takes no more for now
	frames  int     // whose answers are in buf, with the bytes read for them
	bytes   int
	answers int   // bytes of their outcomes that are charged to the account
	err     error // the link is broken; answers go nowhere from here on
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// maxPooled keeps one huge answer from staying in memory for ever.
const maxPooled = 64 << 10

// append encodes the answer to call. It returns false where that does not fit a line, and encodes nothing.
func (w *writer) append(call *kernel.Call, stamp *schema.Stamp) bool {
	w.open()
	begin := len(*w.buf)
	if call.Err == nil {
		*w.buf = schema.AppendReply(*w.buf, &call.Message, call.Data, stamp)
		return w.fits(begin)
	}
	*w.buf = schema.AppendError(*w.buf, &call.Message, call.Err, stamp)
	if !w.fits(begin) {
		*w.buf = schema.AppendError(*w.buf, &call.Message, schema.Brief(call.Err), stamp)
	}
	return true
}

// push encodes an event of the subscription that call made. It returns false where that does not fit a line, and encodes nothing.
func (w *writer) push(call *kernel.Call, e *kernel.Event, stamp *schema.Stamp) bool {
	w.open()
	begin := len(*w.buf)
	meta := schema.Metadata{Causation: e.Causation, Correlation: e.Correlation}
	*w.buf = schema.AppendEvent(*w.buf, call.Message.Dialect, e.Type, e.Data, meta, stamp)
	return w.fits(begin)
}

// appendLine takes a line that is encoded.
func (w *writer) appendLine(line []byte) {
	if w.buf == nil {
		w.buf = &line
	} else {
		*w.buf = append(*w.buf, line...)
	}
}

func (w *writer) open() {
	if w.buf == nil {
		w.buf = buffers.Get().(*[]byte)
	}
}

// fits takes the last line, from begin on, back where it is too long.
func (w *writer) fits(begin int) bool {
	if len(*w.buf)-begin-1 <= w.link.LineLimit() {
		return true
	}
	*w.buf = (*w.buf)[:begin]
	return false
}

// owe notes the credits that come back once all is written.
func (w *writer) owe(frames, bytes, answers int) {
	w.frames += frames
	w.bytes += bytes
	w.answers += answers
}

// ready reports whether flush has something to do.
func (w *writer) ready() bool { return w.buf != nil && !w.full }

// flush writes what there is, as far as the peer takes it.
func (w *writer) flush() {
	if !w.ready() {
		return
	}
	if w.err == nil && len(*w.buf) > 0 {
		n, err := w.link.Write((*w.buf)[w.written:])
		w.written += n
		w.fail(err)
	}
	if w.full = w.err == nil && w.written < len(*w.buf); w.full {
		return
	}
	w.credits.give(w.frames, w.bytes, w.answers)
	if cap(*w.buf) <= maxPooled {
		*w.buf = (*w.buf)[:0]
		buffers.Put(w.buf)
	}
	w.buf, w.written, w.frames, w.bytes, w.answers = nil, 0, 0, 0, 0
}

// fail notes an error of the link, and has input end: further frames could not be answered.
func (w *writer) fail(err error) {
	if err != nil && w.err == nil {
		w.err = err
		w.link.Interrupt()
	}
}

// idle reports whether all is written.
func (w *writer) idle() bool { return w.buf == nil }

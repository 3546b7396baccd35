package actors

import (
	"sync"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// writer is the sending half of a connection. It never blocks: what the peer does not accept stays in the buffer, with
// further answers, until the link is ready.
type writer struct {
	link    Link
	credits *credits

	buf     *[]byte // encoded, not written; nil: empty
	written int     // bytes of buf that are written
	full    bool    // the peer accepts nothing more for now
	frames  int     // number of answers in buf; with size, the credits to return
	bytes   int
	answers int   // bytes of their outcomes that are charged to the account
	err     error // the link is broken; answers are dropped
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

// maxPooled prevents that the buffer of one huge answer is kept.
const maxPooled = 64 << 10

// append encodes the answer to call. It returns false, and encodes nothing, if that does not fit a line.
func (w *writer) append(call *kernel.Call, stamp *schema.Stamp) bool {
	w.open()
	begin := len(*w.buf)
	data, failure := call.Answered()
	if failure == nil {
		*w.buf = schema.AppendReply(*w.buf, &call.Message, data, stamp)
		return w.fits(begin)
	}
	*w.buf = schema.AppendError(*w.buf, &call.Message, failure, stamp)
	if !w.fits(begin) {
		*w.buf = schema.AppendError(*w.buf, &call.Message, schema.Brief(failure), stamp)
	}
	return true
}

// push encodes an event of the subscription that call made. It returns false, and encodes nothing, if that does not
// fit a line.
func (w *writer) push(call *kernel.Call, e *kernel.Event, stamp *schema.Stamp) bool {
	w.open()
	begin := len(*w.buf)
	meta := schema.Metadata{Causation: e.Causation, Correlation: e.Correlation}
	*w.buf = schema.AppendEvent(*w.buf, call.Message.Dialect, e.Type, e.Data, meta, stamp)
	return w.fits(begin)
}

// appendLine appends an encoded line.
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

// fits removes the last line, which starts at begin, if it is too long.
func (w *writer) fits(begin int) bool {
	if len(*w.buf)-begin-1 <= w.link.LineLimit() {
		return true
	}
	*w.buf = (*w.buf)[:begin]
	return false
}

// addCredits adds credits that return once everything is written.
func (w *writer) addCredits(frames, bytes, answers int) {
	w.frames += frames
	w.bytes += bytes
	w.answers += answers
}

// ready reports whether flush has something to do.
func (w *writer) ready() bool { return w.buf != nil && !w.full }

// flush writes as much as the peer accepts.
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

// fail stores an error of the link and ends the input: further frames could not be answered.
func (w *writer) fail(err error) {
	if err != nil && w.err == nil {
		w.err = err
		w.link.Interrupt()
	}
}

// idle reports whether everything is written.
func (w *writer) idle() bool { return w.buf == nil }

// Link is a stream of lines that never blocks its caller. The loop calls it; any goroutine may call Interrupt and
// Close.
type Link interface {
	// Open makes p watch the link. ready is called on any goroutine with what has become possible: poll.In when Fill may
	// find something, immediately if there already is something; poll.Out after a Write that did not write everything;
	// poll.Hup when the peer has closed both directions.
	Open(p poll.Poller, ready func(poll.Event)) error
	// Fill reads once. If more is false, there is nothing left for now, and ready is called when there is. Another call
	// then releases the buffer of the lines.
	Fill() (more bool)
	// Next returns the next line that Fill has read, valid until the next Fill; ok is false if there is none.
	// schema.ErrLineTooLong is not final, other errors are: io.EOF when the peer has ended its side.
	Next() (line []byte, ok bool, err error)
	// Write writes as much as the peer accepts without blocking.
	Write(p []byte) (n int, err error)
	// Dialect is the dialect of answers to frames without a recognizable one.
	Dialect() schema.Dialect
	// LineLimit is the longest line in bytes.
	LineLimit() int
	// Interrupt makes Next return what was received already, and then an error other than io.EOF; ready is called
	// with poll.In and poll.Hup. It may be called again.
	Interrupt()
	// Close ends both directions. It may be called again.
	Close() error
}

// The window of a connection limits its frames and bytes in flight, from reading a frame until its answer is written. It
// also limits its part of a turn.
const (
	windowFrames = 128
	windowBytes  = 256 << 10
)

// credits is the window that bounds a connection's memory: a client that does not read its answers is not read from
// (backpressure).
type credits struct {
	frames  int
	bytes   int
	account *share // which is charged the bytes too; nil: the operator's
}

// take takes the credits for a frame of size bytes, if window and account have room. The first frame always fits the
// window.
func (c *credits) take(size int) bool {
	if !c.open(size) || !c.account.tryTake(size) {
		return false
	}
	c.frames++
	c.bytes += size
	return true
}

// open reports whether the window has room for a frame of size bytes.
func (c *credits) open(size int) bool {
	return c.frames == 0 || c.frames < windowFrames && c.bytes+size <= windowBytes
}

// grow adds to the size of the last frame, when there is room or all others are answered.
func (c *credits) grow(size int) bool {
	if c.frames > 1 && c.bytes+size > windowBytes {
		return false
	}
	c.bytes += size
	c.account.add(size)
	return true
}

// give returns credits, and the answers' bytes to the account.
func (c *credits) give(frames, bytes, answers int) {
	c.frames -= frames
	c.bytes -= bytes
	c.account.give(bytes + answers)
}

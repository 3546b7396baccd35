package unixsock

import (
	"errors"
	"io"
	"net"
	"sync/atomic"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// ErrInterrupted is the final error of a Link whose input was ended by Interrupt.
var ErrInterrupted = errors.New("input was interrupted")

// States of a Link's input. It leaves inputOpen once.
const (
	inputOpen        int32 = iota
	inputDrained           // buffered input is read, then io.EOF
	inputInterrupted       // no more input is read
)

// Link is the non-blocking interface of a Conn, for a loop. Open, Fill, Next and Write are called by one goroutine at a
// time, the other methods by any.
type Link struct {
	conn   *Conn
	opened atomic.Bool // stream and ready are set
	stream poll.Stream
	ready  func(poll.Event)

	readable atomic.Bool // input may have arrived after the last read
	input    atomic.Int32
	late     int // bytes read since the input was drained
}

// Open adds the stream of the Conn to p. From then on ready gets the events, on the goroutine of p.Wait or another; it
// gets an In before Open returns. For a paired Conn, only Gone reports a hang-up.
func (l *Link) Open(p poll.Poller, ready func(poll.Event)) error {
	if err := l.attach(p, ready); err != nil {
		return err
	}
	now := poll.In
	if l.input.Load() == inputDrained { // Drain was called before Open
		now |= poll.Hup
	}
	ready(now)
	return nil
}

func (l *Link) attach(p poll.Poller, ready func(poll.Event)) (err error) {
	c := l.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	l.readable.Store(true)
	l.ready = ready
	l.stream, err = p.Add(poll.Source{File: file{c.stream}, In: c.in, Out: c.out}, l.notify)
	if err == nil {
		l.opened.Store(true)
	}
	return err
}

// notify passes an event of the poller to ready.
func (l *Link) notify(e poll.Event) {
	if !l.opened.Load() && !l.awaitOpen() {
		return
	}
	if e&poll.In != 0 {
		l.readable.Store(true)
	}
	if l.conn.over != nil {
		e &^= poll.Hup
	}
	if e != 0 {
		l.ready(e)
	}
}

// awaitOpen waits until Open returns, and reports whether it succeeded.
func (l *Link) awaitOpen() bool {
	l.conn.mu.Lock()
	defer l.conn.mu.Unlock()
	return l.opened.Load()
}

// Fill reads once. If more is false, ready gets In when input arrives. If none has arrived since the last read, Fill
// makes no system call and releases the buffer of Next's lines. Next returns its error, after the last line.
func (l *Link) Fill() (more bool) {
	if !l.opened.Load() || !l.readable.Load() && l.input.Load() == inputOpen {
		l.conn.lines.Trim()
		return false
	}
	return l.conn.lines.Fill(l)
}

// ReadOnce implements schema.Source for Fill.
func (l *Link) ReadOnce(p []byte) (n int, more bool, err error) {
	switch l.input.Load() {
	case inputInterrupted:
		return 0, false, ErrInterrupted
	case inputDrained:
		return l.readLate(p)
	}
	l.readable.Store(false) // before the read, so that input that arrives meanwhile causes an event
	n, more, err = l.stream.Read(p)
	if err == poll.ErrAgain {
		err = nil
	}
	if more {
		l.readable.Store(true)
	}
	return n, more, err
}

// readLate reads input that arrived before Drain or Gone.
func (l *Link) readLate(p []byte) (n int, more bool, err error) {
	if p = p[:min(len(p), mostLate-l.late)]; len(p) == 0 {
		return 0, false, io.EOF
	}
	n, _, err = l.stream.Read(p)
	if err == poll.ErrAgain {
		err = io.EOF
	}
	l.late += n
	return n, true, err
}

// Next returns the next line that Fill has read, valid until the next Fill; ok is false if there is none. See
// schema.LineReader.
func (l *Link) Next() (line []byte, ok bool, err error) { return l.conn.lines.TryNext() }

// Write writes as much as the peer accepts; if that is not all and the error is nil, ready gets Out.
func (l *Link) Write(p []byte) (int, error) {
	if !l.opened.Load() {
		return l.conn.TryWrite(p)
	}
	return l.stream.Write(p)
}

// Dialect returns the dialect of answers to frames without one.
func (l *Link) Dialect() schema.Dialect { return l.conn.dialect }

// LineLimit returns the maximum length of a line in bytes.
func (l *Link) LineLimit() int { return l.conn.limit }

// Interrupt ends the input: Next returns the lines that were read, then ErrInterrupted. ready gets In and Hup, so that
// a reader that is paused by backpressure is notified too.
func (l *Link) Interrupt() {
	if !l.end(inputInterrupted, poll.In|poll.Hup) {
		l.conn.Interrupt()
	}
}

// Gone ends the input of an open link whose peer has ended, even if another process keeps the other end open: bytes
// that were written before are read, then io.EOF. ready gets an event, after which the loop should not wait for Out.
func (l *Link) Gone() { l.end(inputDrained, poll.In|poll.Out|poll.Hup) }

// end sets the state of the input and passes an event to ready. It returns false if the link is not open.
func (l *Link) end(state int32, e poll.Event) bool {
	l.input.CompareAndSwap(inputOpen, state)
	if !l.opened.Load() {
		return false
	}
	l.ready(e)
	return true
}

// discard drops unread input, when the loop no longer uses the link. It returns false if the link is not open.
func (l *Link) discard() bool {
	if !l.opened.Load() {
		return false
	}
	_ = l.stream.CloseRead() // as in shut
	var junk [512]byte
	for read := 0; read < mostLate; {
		n, _, err := l.stream.Read(junk[:])
		if err != nil {
			break
		}
		read += n
	}
	return true
}

// Close closes the stream. No further event follows, except one in progress.
func (l *Link) Close() error {
	_, err := l.conn.closeSilently()
	return err
}

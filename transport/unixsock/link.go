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

// States of a Link's input. The first that it gets to behind inputOpen stays.
const (
	inputOpen        int32 = iota
	inputDrained           // what has come is read, then the end
	inputInterrupted       // nothing more is read
)

// Link is the side of a Conn that never waits, for a loop. Open, Fill, Next and Write are called by one goroutine at a time; the
// other methods by any.
type Link struct {
	conn   *Conn
	opened atomic.Bool // stream and ready are set
	stream poll.Stream
	ready  func(poll.Event)

	readable atomic.Bool // something may have come since the last read
	input    atomic.Int32
	late     int // bytes read since the input was drained
}

// Open hands the link to p, which takes the stream from the Conn. From now on ready gets the
// events, on the goroutine of p.Wait or another, and one In before Open returns. For a paired Conn,
// only Gone reports a hang-up.
func (l *Link) Open(p poll.Poller, ready func(poll.Event)) error {
	if err := l.attach(p, ready); err != nil {
		return err
	}
	now := poll.In
	if l.input.Load() == inputDrained { // before
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
	l.stream, err = p.Add(poll.Source{File: file{c.stream}, In: c.in, Out: c.out}, l.told)
	if err == nil {
		l.opened.Store(true)
	}
	return err
}

// told passes on what the poller says.
func (l *Link) told(e poll.Event) {
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

// awaitOpen waits until open returns, and reports whether it went well.
func (l *Link) awaitOpen() bool {
	l.conn.mu.Lock()
	defer l.conn.mu.Unlock()
	return l.opened.Load()
}

// Fill reads once. If more is false, ready gets In when there is more. If nothing has come since,
// it makes no system call but returns the buffer that Next's lines were in. Its error is returned
// by Next, after the last line.
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
	l.readable.Store(false) // before it reads, so that data that arrives meanwhile causes an event
	n, more, err = l.stream.Read(p)
	if err == poll.ErrAgain {
		err = nil
	}
	if more {
		l.readable.Store(true)
	}
	return n, more, err
}

// readLate reads what has come before the input was drained.
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

// Next returns the next line of what was read, valid until the next Fill; ok is false if there is
// none. See schema.LineReader.
func (l *Link) Next() (line []byte, ok bool, err error) { return l.conn.lines.TryNext() }

// Write writes as much as the peer takes; if that is not all and the error is nil, ready gets Out.
func (l *Link) Write(p []byte) (int, error) {
	if !l.opened.Load() {
		return l.conn.TryWrite(p)
	}
	return l.stream.Write(p)
}

// Dialect is the dialect to answer in where a frame shows none.
func (l *Link) Dialect() schema.Dialect { return l.conn.dialect }

// LineLimit is the longest line in bytes.
func (l *Link) LineLimit() int { return l.conn.limit }

// Interrupt ends the input: Next returns the lines that were read, then ErrInterrupted. ready gets
// In and Hup, so that a reader that has paused because of backpressure notices too.
func (l *Link) Interrupt() {
	if !l.end(inputInterrupted, poll.In|poll.Hup) {
		l.conn.Interrupt()
	}
}

// Gone says, once the link is open, that the other end has no writer any more, even if another
// process keeps it open: what was written before is read, then the input ends. ready is called, and
// should not wait for room to write any more.
func (l *Link) Gone() { l.end(inputDrained, poll.In|poll.Out|poll.Hup) }

// end ends the input in a way and tells so. It returns false if the link is not open.
func (l *Link) end(state int32, e poll.Event) bool {
	l.input.CompareAndSwap(inputOpen, state)
	if !l.opened.Load() {
		return false
	}
	l.ready(e)
	return true
}

// discard drops unread input, once the loop has finished with the link. It returns false if the
// link is not open.
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

// Close ends both directions. No further event follows, except one in progress.
func (l *Link) Close() error {
	_, err := l.conn.closeSilently()
	return err
}

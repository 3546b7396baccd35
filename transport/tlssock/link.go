package tlssock

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// ErrInterrupted is the final error of a Link whose input was ended by Interrupt.
var ErrInterrupted = errors.New("input was interrupted")

const (
	recordSize = 16 << 10 // what one read or write of a Link moves at most: a record of TLS

	// drainTime is how long a drained Link still reads what is on its way.
	drainTime = 100 * time.Millisecond
	// flushTime and lingerTime bound how long Close waits for the peer: to take what was written, then to close.
	flushTime  = 5 * time.Second
	lingerTime = time.Second
	lingerMost = 1 << 20 // bytes that are read, and dropped, meanwhile
)

// States of a Link's input. It leaves inputOpen once.
const (
	inputOpen        = iota
	inputDrained     // what arrives within drainTime is read, then io.EOF
	inputInterrupted // no more input is read
)

// Link is the non-blocking interface of a session, for a loop. One goroutine reads ahead, a record at most; another one
// writes while there is something to write. Open, Fill, Next and Write are called by one goroutine at a time, the other
// methods by any.
type Link struct {
	session *tls.Conn
	stream  net.Conn // below the session
	lines   *schema.LineReader
	limit   int
	ended   func() // called once all goroutines have ended

	work sync.WaitGroup // the reader and the writer

	mu      sync.Mutex
	ready   func(poll.Event)
	input   int
	in      []byte // read ahead
	inErr   error  // what reading ended with, after in
	taken   chan struct{}
	out     []byte // being written
	writing bool
	outErr  error
	closed  bool
}

func newLink(session *tls.Conn, stream net.Conn, lines *schema.LineReader, limit int, ended func()) *Link {
	return &Link{session: session, stream: stream, lines: lines, limit: limit, ended: ended, taken: make(chan struct{}, 1)}
}

// Open starts to read. The poller is not used, since a session has more than its descriptor shows.
func (l *Link) Open(_ poll.Poller, ready func(poll.Event)) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return net.ErrClosed
	}
	l.ready = ready
	now := poll.In // what came with the prologue
	if l.input != inputOpen {
		now |= poll.Hup
	}
	l.work.Go(l.read)
	l.mu.Unlock()
	ready(now)
	return nil
}

// read reads ahead until the input ends.
func (l *Link) read() {
	buf := make([]byte, recordSize)
	for {
		n, err := l.session.Read(buf)
		if n == 0 && err == nil {
			continue
		}
		now, more := l.received(buf[:n], err)
		l.ready(now)
		if !more {
			return
		}
		<-l.taken
	}
}

// received passes what was read to ReadOnce, and reports whether there may be more.
func (l *Link) received(p []byte, err error) (now poll.Event, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.in, l.inErr = p, err
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case errors.Is(err, os.ErrDeadlineExceeded): // of end, or Close
		l.inErr = io.EOF
	default: // the session is broken, for both directions
		l.outErr = cmp.Or(l.outErr, err)
		return poll.In | poll.Hup, false
	}
	return poll.In, err == nil && !l.closed
}

// Fill reads once. If more is false, ready gets In when input arrives. Next returns its error, after the last line.
func (l *Link) Fill() (more bool) { return l.lines.Fill(l) }

// ReadOnce implements schema.Source for Fill.
func (l *Link) ReadOnce(p []byte) (n int, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.input == inputInterrupted {
		return 0, false, ErrInterrupted
	}
	if n = copy(p, l.in); n == 0 {
		return 0, false, l.inErr
	}
	if l.in = l.in[n:]; len(l.in) == 0 && l.inErr == nil {
		l.readOn()
	}
	return n, len(l.in) > 0 || l.inErr != nil, nil
}

// readOn lets the reader go on. The caller holds mu.
func (l *Link) readOn() {
	select {
	case l.taken <- struct{}{}:
	default:
	}
}

// Next returns the next line that Fill has read, valid until the next Fill; ok is false if there is none. See
// schema.LineReader.
func (l *Link) Next() (line []byte, ok bool, err error) { return l.lines.TryNext() }

// Write takes as much of p as is written at once; if that is not all and the error is nil, ready gets Out.
func (l *Link) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.outErr != nil:
		return 0, l.outErr
	case l.closed:
		return 0, net.ErrClosed
	case l.writing || len(p) == 0 || l.ready == nil:
		return 0, nil
	}
	l.out = append(l.out[:0], p[:min(len(p), recordSize)]...)
	l.writing = true
	l.work.Go(l.flush)
	return len(l.out), nil
}

// flush writes out.
func (l *Link) flush() {
	_, err := l.session.Write(l.out)
	l.mu.Lock()
	l.writing = false
	now := poll.Out
	if l.outErr = cmp.Or(l.outErr, err); l.outErr != nil {
		now |= poll.In | poll.Hup
	}
	l.mu.Unlock()
	l.ready(now)
}

// Dialect returns the dialect of answers to frames without one.
func (l *Link) Dialect() schema.Dialect { return schema.OsMessage }

// LineLimit returns the maximum length of a line in bytes.
func (l *Link) LineLimit() int { return l.limit }

// Interrupt ends the input: Next returns the lines that were read, then ErrInterrupted. ready gets In and Hup.
func (l *Link) Interrupt() { l.end(inputInterrupted, time.Unix(1, 0), poll.In|poll.Hup) }

// Drain ends the input: Next returns the lines that have arrived, then io.EOF. ready gets Hup, so that nothing waits for
// this peer.
func (l *Link) Drain() { l.end(inputDrained, time.Now().Add(drainTime), poll.Hup) }

// end sets the state of the input, and when reading ends. It passes an event to ready if the link is open.
func (l *Link) end(state int, at time.Time, now poll.Event) {
	l.mu.Lock()
	if l.input == inputOpen {
		l.input = state
		_ = l.session.SetReadDeadline(at) // fails only on a closed stream
	}
	ready := l.ready
	l.mu.Unlock()
	if ready != nil {
		ready(now)
	}
}

// Close ends the session: what was written is sent, and then the peer has a while to close too, since a stream that is
// closed with unread input takes back what its peer has not read yet. Close does not wait for that.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	past := time.Unix(1, 0)
	_ = l.session.SetReadDeadline(past) // fails only on a closed stream, as the next does
	_ = l.session.SetWriteDeadline(time.Now().Add(flushTime))
	l.readOn()
	go l.finish(errors.Is(l.inErr, io.EOF) && l.input == inputOpen)
	return nil
}

// finish ends what Close began. over says that the peer has ended its output.
func (l *Link) finish(over bool) {
	defer l.ended()
	l.work.Wait()
	if l.session.CloseWrite() == nil && !over {
		if half, ok := l.stream.(*net.TCPConn); ok {
			_ = half.CloseWrite() // fails if the peer has closed, which the reads below report
		}
		_ = l.stream.SetReadDeadline(time.Now().Add(lingerTime)) // as in Close
		_, _ = io.CopyN(io.Discard, l.stream, lingerMost)        // the peer's end, or whatever else ends it
	}
	_ = l.stream.Close() // nothing is left to lose
}

// abort closes the stream at once, and with it ends everything that Close waits for.
func (l *Link) abort() {
	_ = l.stream.Close() // fails only if it is closed
	_ = l.Close()        // never fails
}

// prologue has the lines of a session for the prologue.
type prologue struct {
	*tls.Conn
	*schema.LineReader
}

// Dialect implements access.Lines.
func (prologue) Dialect() schema.Dialect { return schema.OsMessage }

// LineLimit implements access.Lines.
func (prologue) LineLimit() int { return schema.MaxLine }

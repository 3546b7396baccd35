package unixsock

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// Conn is a channel of lines over a stream that the runtime's poller knows: a Unix socket, a pipe, or a pair of pipes. One
// goroutine may read while another writes. Link is its side for a loop: once that is open, nothing here may read or write.
type Conn struct {
	stream  duplex
	in, out syscall.RawConn
	lines   *schema.LineReader
	dialect schema.Dialect
	limit   int

	reading attempt
	writing attempt

	over <-chan struct{} // closed when the other end has no writer any more; if nil, input itself shows it
	late int             // bytes read since

	draining atomic.Bool // no further input is accepted

	mu     sync.Mutex // locked while the stream is handed to a poller, or closed
	closed bool
	link   Link
}

// duplex is what a channel needs except for its two raw directions.
type duplex interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// stream is what net.UnixConn and os.File have in common.
type stream interface {
	duplex
	syscall.Conn
}

var (
	_ stream        = (*net.UnixConn)(nil)
	_ stream        = (*os.File)(nil)
	_ schema.Filler = (*Conn)(nil)
)

// Detacher is a stream that must know when it ends. Detach closes its descriptor when a Link is
// opened, which continues with a duplicate; Close is called when that is closed.
type Detacher interface{ Detach() error }

// file is a stream as a poller takes it over.
type file struct{ duplex }

// Close closes the descriptor.
func (f file) Close() error {
	if d, ok := f.duplex.(Detacher); ok {
		return d.Detach()
	}
	return f.duplex.Close()
}

// NewConn returns a channel over s with lines of at most limit bytes; dialect is the one to answer in where a frame
// shows none.
func NewConn(s stream, dialect schema.Dialect, limit int) (*Conn, error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	return wrapConn(s, raw, raw, dialect, limit), nil
}

// Paired is a stream whose directions are two: what a program reads and what it writes.
type Paired interface {
	duplex
	RawConns() (in, out syscall.RawConn, err error)
}

// NewPairedConn is NewConn over such a stream.
//
// After over is closed and the stream's deadlines are set to a past time, what was written before
// is read, and then input ends, even if another process was given the other end and keeps it open.
func NewPairedConn(s Paired, dialect schema.Dialect, limit int, over <-chan struct{}) (*Conn, error) {
	in, out, err := s.RawConns()
	if err != nil {
		return nil, err
	}
	c := wrapConn(s, in, out, dialect, limit)
	c.over = over
	return c, nil
}

func wrapConn(s duplex, in, out syscall.RawConn, dialect schema.Dialect, limit int) *Conn {
	c := &Conn{stream: s, in: in, out: out, dialect: dialect, limit: limit}
	c.reading.try = c.reading.read
	c.writing.try = c.writing.write
	c.lines = schema.NewLineReader(c, limit)
	c.link.conn = c
	return c
}

// Dialect is the dialect to answer in where a frame shows none.
func (c *Conn) Dialect() schema.Dialect { return c.dialect }

// LineLimit is the longest line in bytes.
func (c *Conn) LineLimit() int { return c.limit }

// Next returns the next line; see schema.LineReader.
func (c *Conn) Next() ([]byte, error) { return c.lines.Next() }

// TryNext is Next for what was received already; see schema.LineReader.
func (c *Conn) TryNext() (line []byte, ok bool, err error) { return c.lines.TryNext() }

// Read implements io.Reader for the line reader.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.stream.Read(p)
	if n == 0 && c.cutShort(err) {
		return c.rest(p)
	}
	return n, err
}

// attempt is one try to read or write without waiting. Its functions are made once a connection, since a closure made
// for each call would be an allocation for each.
type attempt struct {
	try func(fd uintptr) bool
	get func() []byte // read: where to
	put func([]byte)
	buf []byte // read: what came; write: what is left to write
	n   int
	err error
}

// Fill implements schema.Filler: it waits for input without holding a buffer, so that an idle connection costs its
// goroutine and little else.
func (c *Conn) Fill(get func() []byte, put func([]byte)) ([]byte, error) {
	r := &c.reading
	r.get, r.put, r.buf, r.n, r.err = get, put, nil, 0, nil
	if err := c.in.Read(r.try); err != nil {
		if !c.cutShort(err) {
			return nil, err
		}
		buf := get()
		n, err := c.rest(buf)
		return buf[:n], err
	}
	switch {
	case r.err != nil:
		return r.buf, os.NewSyscallError("read", r.err)
	case r.n == 0:
		return r.buf, io.EOF
	}
	return r.buf, nil
}

// read takes what there is; false has the poller wait for input and try again.
func (r *attempt) read(fd uintptr) bool {
	buf := r.get()
	for {
		if r.n, r.err = syscall.Read(int(fd), buf); r.err != syscall.EINTR {
			break
		}
	}
	if r.err == syscall.EAGAIN {
		r.put(buf)
		return false
	}
	r.buf = buf[:max(r.n, 0)]
	return true
}

// cutShort reports whether reading failed because the other end has no writer any more.
func (c *Conn) cutShort(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if c.draining.Load() {
		return true
	}
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// mostLate is more than a pipe or a socket can buffer: anything beyond it was not written by the
// peer.
const mostLate = 1 << 20

// rest reads what the peer has left behind, without waiting for more.
func (c *Conn) rest(p []byte) (n int, err error) {
	controlErr := c.in.Control(func(fd uintptr) {
		for {
			if n, err = syscall.Read(int(fd), p[:min(len(p), mostLate-c.late)]); err != syscall.EINTR {
				return
			}
		}
	})
	if controlErr != nil {
		return 0, controlErr
	}
	if n <= 0 { // the end, or nothing is there; whatever failed, nothing more can be had
		return 0, io.EOF
	}
	c.late += n
	return n, nil
}

// TryWrite writes as much of p as the peer takes without waiting; n < len(p) with a nil error means that it is full.
func (c *Conn) TryWrite(p []byte) (int, error) {
	w := &c.writing
	w.buf, w.n, w.err = p, 0, nil
	err := c.out.Write(w.try)
	w.buf = nil
	if err == nil && w.err != nil && w.err != syscall.EAGAIN {
		err = os.NewSyscallError("write", w.err)
	}
	return w.n, err
}

// write gives what the peer takes; it never asks the poller to wait.
func (w *attempt) write(fd uintptr) bool {
	for w.n < len(w.buf) {
		n, err := syscall.Write(int(fd), w.buf[w.n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			w.err = err
			break
		}
		w.n += n
	}
	return true
}

// Write writes all of p, waiting for the peer.
func (c *Conn) Write(p []byte) (int, error) { return c.stream.Write(p) }

// SetDeadline bounds reading and writing; the zero time is no bound.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.stream.SetReadDeadline(t), c.stream.SetWriteDeadline(t))
}

// Link returns the side of c that never waits.
func (c *Conn) Link() *Link { return &c.link }

// Drain accepts no further input: Next returns what has arrived, and then the end. The peer's next
// write fails. An open Link gets Hup, since no one waits for this peer any more.
func (c *Conn) Drain() {
	c.link.input.CompareAndSwap(inputOpen, inputDrained)
	if c.shut() {
		c.link.ready(poll.In | poll.Hup)
	}
}

// shut accepts no further input, and reports whether an open Link must find that out.
func (c *Conn) shut() (opened bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if opened = c.link.opened.Load(); opened {
		_ = c.link.stream.CloseRead() // it fails if the peer has left, or the stream was closed
		return opened
	}
	c.draining.Store(true)
	if half, ok := c.stream.(interface{ CloseRead() error }); ok {
		_ = half.CloseRead() // it fails if the peer has left
	}
	c.Interrupt()
	return opened
}

// discard drops unread input. Closing a socket with unread input shows its peer a reset instead of
// an end.
func (c *Conn) discard() {
	if c.link.discard() {
		return
	}
	c.Drain()
	var junk [512]byte // on a stack that is small, of a connection that is idle
	for n := 1; n > 0; {
		n, _ = c.rest(junk[:])
	}
}

// Interrupt makes Next return what was received already, and then an error.
func (c *Conn) Interrupt() { _ = c.stream.SetReadDeadline(time.Unix(1, 0)) }

// CloseWrite tells the peer that nothing more will come, where the stream can say so.
func (c *Conn) CloseWrite() error {
	if half, ok := c.stream.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close ends both directions; waiting reads and writes return, and an open Link gets an event.
func (c *Conn) Close() error {
	tell, err := c.closeSilently()
	if tell != nil {
		tell(poll.In | poll.Hup)
	}
	return err
}

// closeSilently is Close without the event. It returns the Link that needs it, or nil if none is open.
func (c *Conn) closeSilently() (tell func(poll.Event), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.link.opened.Load() {
		c.closed = true
		return nil, c.stream.Close()
	}
	if c.closed {
		return nil, nil
	}
	c.closed = true
	c.link.readable.Store(true) // the error
	err = c.link.stream.Close()
	if _, ok := c.stream.(Detacher); ok {
		if endErr := c.stream.Close(); !errors.Is(endErr, net.ErrClosed) {
			err = errors.Join(err, endErr)
		}
	}
	return c.link.ready, err
}

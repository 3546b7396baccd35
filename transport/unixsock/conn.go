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

// Conn is a channel of lines over a stream of the runtime's poller: a Unix socket, a pipe, or a pair of pipes. One
// goroutine may read while another writes. Link is its interface for a loop: once that is open, only the Link may be
// read and written.
type Conn struct {
	stream  duplex
	in, out syscall.RawConn
	lines   *schema.LineReader
	dialect schema.Dialect
	limit   int

	reading attempt
	writing attempt

	over <-chan struct{} // closed when the other end has no writer; nil: the end of input shows it
	late int             // bytes read after over was closed

	draining atomic.Bool // no further input is accepted

	mu     sync.Mutex // locked while the stream is handed to a poller, or closed
	closed bool
	link   Link
}

// duplex has the methods of a channel's stream, except access to the descriptors.
type duplex interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// stream has the methods that net.UnixConn and os.File share.
type stream interface {
	duplex
	syscall.Conn
}

var (
	_ stream        = (*net.UnixConn)(nil)
	_ stream        = (*os.File)(nil)
	_ schema.Filler = (*Conn)(nil)
)

// Detacher is a stream that has to be notified of its end. When a Link is opened, which uses a duplicate descriptor,
// Detach closes the original one; Close is called when the Link is closed.
type Detacher interface{ Detach() error }

// file is a stream that a poller takes over.
type file struct{ duplex }

// Close closes the descriptor; of a Detacher, by Detach.
func (f file) Close() error {
	if d, ok := f.duplex.(Detacher); ok {
		return d.Detach()
	}
	return f.duplex.Close()
}

// NewConn returns a channel over s with lines of at most limit bytes; dialect is that of answers to frames without one.
func NewConn(s stream, dialect schema.Dialect, limit int) (*Conn, error) {
	raw, err := s.SyscallConn()
	if err != nil {
		return nil, err
	}
	return wrapConn(s, raw, raw, dialect, limit), nil
}

// Paired is a stream of two descriptors: a program's standard input and output.
type Paired interface {
	duplex
	RawConns() (in, out syscall.RawConn, err error)
}

// NewPairedConn is NewConn for a Paired. If over is closed, and then the stream's deadlines are set to a past time, the
// input ends after the bytes that were written before, even if another process keeps the other end open.
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

// Dialect returns the dialect of answers to frames without one.
func (c *Conn) Dialect() schema.Dialect { return c.dialect }

// LineLimit returns the maximum length of a line in bytes.
func (c *Conn) LineLimit() int { return c.limit }

// Next returns the next line; see schema.LineReader.
func (c *Conn) Next() ([]byte, error) { return c.lines.Next() }

// TryNext returns the next line if it was received already; see schema.LineReader.
func (c *Conn) TryNext() (line []byte, ok bool, err error) { return c.lines.TryNext() }

// Read implements io.Reader for the line reader.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.stream.Read(p)
	if n == 0 && c.cutShort(err) {
		return c.rest(p)
	}
	return n, err
}

// attempt is one attempt to read or write without waiting. Its functions are made once for a connection, since a
// closure for each call would be an allocation for each.
type attempt struct {
	try func(fd uintptr) bool
	get func() []byte // read: returns the buffer
	put func([]byte)
	buf []byte // read: the input; write: the bytes not written yet
	n   int
	err error
}

// Fill implements schema.Filler. It waits for input without a buffer, to save memory while the connection is idle.
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

// read reads the available input; false makes the poller wait for input and call it again.
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

// cutShort reports whether reading failed because over was closed.
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

// mostLate is more than a pipe or a socket can buffer: further bytes were written after over was closed.
const mostLate = 1 << 20

// rest reads buffered input, without waiting for more.
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
	if n <= 0 { // the end of input, no input, or an error: nothing is left to read
		return 0, io.EOF
	}
	c.late += n
	return n, nil
}

// TryWrite writes as much of p as the peer accepts without waiting; n < len(p) with a nil error means that its buffer
// is full.
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

// write writes as much as the peer accepts; it never makes the poller wait.
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

// Write writes all of p, and waits for the peer if necessary.
func (c *Conn) Write(p []byte) (int, error) { return c.stream.Write(p) }

// SetDeadline bounds reading and writing; the zero time is no bound.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.stream.SetReadDeadline(t), c.stream.SetWriteDeadline(t))
}

// Link returns the interface of c for a loop.
func (c *Conn) Link() *Link { return &c.link }

// Drain ends the input: Next returns the lines that have arrived, then io.EOF. The peer's next write fails. An open
// Link gets Hup, so that it does not wait for this peer.
func (c *Conn) Drain() {
	c.link.input.CompareAndSwap(inputOpen, inputDrained)
	if c.shut() {
		c.link.ready(poll.In | poll.Hup)
	}
}

// shut ends the input, and reports whether a Link is open, which has to be notified.
func (c *Conn) shut() (opened bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if opened = c.link.opened.Load(); opened {
		_ = c.link.stream.CloseRead() // fails if the peer has closed, or the stream is closed
		return opened
	}
	c.draining.Store(true)
	if half, ok := c.stream.(interface{ CloseRead() error }); ok {
		_ = half.CloseRead() // fails if the peer has closed
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
	var junk [512]byte // small, since the stack of an idle connection is
	for n := 1; n > 0; {
		n, _ = c.rest(junk[:])
	}
}

// Interrupt makes Next return the received lines, and then an error.
func (c *Conn) Interrupt() { _ = c.stream.SetReadDeadline(time.Unix(1, 0)) }

// CloseWrite ends the output, if the stream can do that alone.
func (c *Conn) CloseWrite() error {
	if half, ok := c.stream.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the stream; blocked reads and writes return, and an open Link gets an event.
func (c *Conn) Close() error {
	notify, err := c.closeSilently()
	if notify != nil {
		notify(poll.In | poll.Hup)
	}
	return err
}

// closeSilently is Close without the event. It returns the function that passes the event to the open Link; nil: none
// is open.
func (c *Conn) closeSilently() (notify func(poll.Event), err error) {
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

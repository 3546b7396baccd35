package unixsock

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// Link is a Conn as a loop uses it once the prologue is over: it never waits. One goroutine at a time calls its methods, but for
// those that say otherwise.
type Link struct {
	conn  *Conn
	ready func(poll.Event)
	read  func(p []byte) (int, error) // made once
	more  bool                        // the last read has left something
	late  int                         // bytes read since input was ended

	ended  atomic.Pointer[error] // why nothing more is waited for; nil: it is
	mu     sync.Mutex
	stream poll.Stream // nil until Open
	closed bool
}

// Link returns c for a loop. The methods of c that wait must not be called any more.
func (c *Conn) Link() *Link {
	l := &Link{conn: c}
	l.read = l.readOnce
	c.link.Store(l)
	return l
}

// detacher is a stream whose Close says more than that its descriptor is closed.
type detacher interface{ Detach() error }

// file is a stream that is closed because a poller has taken it over.
type file struct{ duplex }

func (f file) Close() error {
	if d, ok := f.duplex.(detacher); ok {
		return d.Detach()
	}
	return f.duplex.Close()
}

// Open has p watch the link from now on; see actors.Link.
func (l *Link) Open(p poll.Poller, ready func(poll.Event)) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return net.ErrClosed
	}
	l.ready = ready
	stream, err := p.Add(poll.Source{File: file{l.conn.stream}, In: l.conn.in, Out: l.conn.out}, ready)
	l.stream = stream
	l.mu.Unlock()
	if err != nil {
		return err
	}
	e := poll.In // the prologue may have read more than was its own
	if l.ended.Load() != nil {
		e |= poll.Hup
	}
	ready(e)
	return nil
}

// Fill reads once; more says that something may be left.
func (l *Link) Fill() (more bool) {
	why := l.ended.Load()
	err := l.conn.lines.Fill(l.read)
	switch {
	case errors.Is(err, poll.ErrAgain) && why == nil:
		return false
	case errors.Is(err, poll.ErrAgain), err == nil && why != nil && l.late >= mostLate:
		err = *why
	}
	if err != nil {
		l.conn.lines.End(err)
		return false
	}
	return l.more || why != nil
}

func (l *Link) readOnce(p []byte) (n int, err error) {
	n, l.more, err = l.stream.Read(p)
	if l.ended.Load() != nil {
		l.late += n
	}
	return n, err
}

// Next returns the next line of what Fill has read; ok is false where there is none.
func (l *Link) Next() (line []byte, ok bool, err error) { return l.conn.lines.TryNext() }

// Write writes as much as the peer takes.
func (l *Link) Write(p []byte) (int, error) { return l.stream.Write(p) }

// Dialect is the dialect to answer in where a frame shows none.
func (l *Link) Dialect() schema.Dialect { return l.conn.dialect }

// LineLimit is the longest line in bytes.
func (l *Link) LineLimit() int { return l.conn.limit }

// Interrupt ends input: what has come by now is read, then Next returns os.ErrDeadlineExceeded. Any goroutine may call it, and again.
func (l *Link) Interrupt() { l.end(os.ErrDeadlineExceeded) }

// Over ends input like Interrupt, but with io.EOF: nobody is left who may write.
func (l *Link) Over() { l.end(io.EOF) }

func (l *Link) end(why error) {
	l.ended.CompareAndSwap(nil, &why)
	l.mu.Lock()
	open := l.stream != nil && !l.closed
	l.mu.Unlock()
	if open {
		l.ready(poll.In | poll.Hup)
	}
}

// Drain is Interrupt, and the peer's next write fails.
func (l *Link) Drain() {
	l.mu.Lock()
	stream := l.stream
	l.mu.Unlock()
	if stream != nil {
		_ = stream.CloseRead() // it fails where the peer has gone
	}
	l.Interrupt()
}

// discard drops what nobody will read.
func (l *Link) discard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream == nil || l.closed {
		return
	}
	_ = l.stream.CloseRead()
	var junk [512]byte
	for left := mostLate; left > 0; {
		n, _, err := l.stream.Read(junk[:])
		if err != nil {
			return
		}
		left -= n
	}
}

// Close ends both directions. Any goroutine may call it, and again.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var err error
	if l.stream != nil {
		err = l.stream.Close()
	}
	if closeErr := l.conn.stream.Close(); !errors.Is(closeErr, net.ErrClosed) && !errors.Is(closeErr, os.ErrClosed) {
		err = errors.Join(err, closeErr)
	}
	return err
}

package actors_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync/atomic"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// link is a channel in memory, in place of a socket, with a peer whose pace the test controls.
type link struct {
	in, out *stream
	dialect schema.Dialect
	limit   int

	buf        []byte // read, not returned yet
	discarding bool   // the rest of a line that is too long
	err        error  // the error after it

	taken   atomic.Int64 // lines that were returned
	onWrite func()       // called by Write first, if it is set
	breaks  func()       // called by the first Interrupt, if it is set
}

var _ actors.Link = (*link)(nil)

// newLink returns a link that accepts capacity bytes of output before its peer reads.
func newLink(dialect schema.Dialect, limit, capacity int) *link {
	return &link{in: newStream(unbounded), out: newStream(capacity), dialect: dialect, limit: limit}
}

func (l *link) Open(_ poll.Poller, ready func(poll.Event)) error {
	l.in.watch(func() {
		if l.in.cut != nil {
			ready(poll.Hup)
		}
		ready(poll.In)
	})
	l.out.watch(func() { ready(poll.Out) })
	ready(poll.In)
	return nil
}

func (l *link) Fill() (more bool) {
	chunk, more, err := l.in.next()
	l.buf = append(l.buf, chunk...)
	if err != nil {
		l.err = err
	}
	return more
}

func (l *link) Next() (line []byte, ok bool, err error) {
	for {
		i := bytes.IndexByte(l.buf, '\n')
		switch {
		case i < 0 && !l.discarding && len(l.buf) > l.limit:
			l.discarding, l.buf = true, nil
			return nil, true, schema.ErrLineTooLong
		case i < 0 && l.err == nil:
			return nil, false, nil
		case i < 0 && l.err == io.EOF && !l.discarding && len(bytes.TrimSpace(l.buf)) > 0:
			line, l.buf = l.buf, nil
		case i < 0:
			return nil, true, l.err
		default:
			line, l.buf = l.buf[:i], l.buf[i+1:]
		}
		switch {
		case l.discarding:
			l.discarding = false
		case len(line) > l.limit:
			return nil, true, schema.ErrLineTooLong
		case len(bytes.TrimSpace(line)) > 0:
			l.taken.Add(1)
			return line, true, nil
		}
	}
}

func (l *link) Write(p []byte) (int, error) {
	if l.onWrite != nil {
		l.onWrite()
	}
	return l.out.write(p, false)
}

func (l *link) Dialect() schema.Dialect { return l.dialect }

func (l *link) LineLimit() int { return l.limit }

// Interrupt keeps frames that were sent but not received yet.
func (l *link) Interrupt() {
	if breaks := l.breaks; breaks != nil {
		l.breaks = nil
		breaks()
	}
	l.in.cutOff(os.ErrDeadlineExceeded)
}

func (l *link) Close() error {
	l.in.cutOff(net.ErrClosed)
	l.in.refuse(net.ErrClosed)
	l.out.refuse(net.ErrClosed)
	l.out.end()
	return nil
}

package authority_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// link is a connection in memory that accepts all writes.
type link struct {
	out chan []byte // answers, as the kernel wrote them

	mu    sync.Mutex
	in    []byte // sent by the peer, not yet received by the kernel
	ended error  // how the peer has ended its side; nil: it has not
	ready func(poll.Event)

	received []byte // received, not yet returned by Next
	final    error  // the error that follows it
}

var _ actors.Link = (*link)(nil)

// room is the most writes that a link buffers, more than a burst has answers.
const room = 1 << 10

func newLink() *link { return &link{out: make(chan []byte, room)} }

// send sends frames that the kernel receives at once.
func (l *link) send(frames []byte) { l.change(poll.In, func() { l.in = append(l.in, frames...) }) }

// finish ends the peer's side cleanly.
func (l *link) finish() { l.end(io.EOF) }

func (l *link) end(why error) {
	l.change(poll.In|poll.Hup, func() {
		if l.ended == nil {
			l.ended = why
		}
	})
}

func (l *link) change(e poll.Event, f func()) {
	l.mu.Lock()
	f()
	ready := l.ready
	l.mu.Unlock()
	if ready != nil {
		ready(e)
	}
}

func (l *link) Open(_ poll.Poller, ready func(poll.Event)) error {
	e := poll.In
	l.mu.Lock()
	l.ready = ready
	if l.ended != nil {
		e |= poll.Hup
	}
	l.mu.Unlock()
	ready(e)
	return nil
}

func (l *link) Fill() (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.received = append(l.received, l.in...)
	l.in, l.final = nil, l.ended
	return false
}

func (l *link) Next() (line []byte, ok bool, err error) {
	line, rest, ok := bytes.Cut(l.received, []byte("\n"))
	if !ok {
		return nil, l.final != nil, l.final
	}
	l.received = rest
	return line, true, nil
}

var errFull = errors.New("more answers than a burst has")

func (l *link) Write(p []byte) (int, error) {
	select {
	case l.out <- bytes.Clone(p):
		return len(p), nil
	default:
		return 0, errFull
	}
}

func (l *link) Dialect() schema.Dialect { return schema.OsMessage }

func (l *link) LineLimit() int { return schema.MaxLine }

func (l *link) Interrupt() { l.end(os.ErrDeadlineExceeded) }

func (l *link) Close() error {
	l.Interrupt()
	return nil
}

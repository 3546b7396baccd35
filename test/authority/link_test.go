package authority_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// link is a channel in memory. What one side sends in one go the other gets in one go.
type link struct {
	out  chan []byte // answers, as the kernel wrote them
	rest []byte      // filled in, not returned yet
	over error       // behind rest

	mu      sync.Mutex
	in      [][]byte // frames for the kernel, one or more lines
	ready   func(poll.Event)
	full    bool // the kernel waits for room in out
	ended   bool // the peer sends no more
	stopped bool // interrupted
	closed  bool
}

var _ actors.Link = (*link)(nil)

// room is how many writes out holds before its writer waits.
const room = 4

func newLink() *link { return &link{out: make(chan []byte, room)} }

// errEnded is what the kernel reads after the peer's last frame.
var errEnded = errors.New("peer has ended its side")

// Open needs no poller.
func (l *link) Open(_ poll.Poller, ready func(poll.Event)) error {
	l.change(func() { l.ready = ready }, poll.In)
	return nil
}

// change changes the link, and then tells of it.
func (l *link) change(change func(), now poll.Event) {
	l.mu.Lock()
	change()
	tell := l.ready
	l.mu.Unlock()
	if tell != nil {
		tell(now)
	}
}

// Fill takes what was sent in one go.
func (l *link) Fill() (more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped:
		l.over = os.ErrDeadlineExceeded
	case len(l.in) > 0:
		l.rest = append(l.rest, l.in[0]...)
		l.in = l.in[1:]
		return len(l.in) > 0 || l.ended
	case l.ended:
		l.over = errEnded
	}
	return false
}

func (l *link) Next() (line []byte, ok bool, err error) {
	if len(l.rest) == 0 {
		return nil, l.over != nil, l.over
	}
	line, l.rest, _ = bytes.Cut(l.rest, []byte("\n"))
	return line, true, nil
}

func (l *link) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, net.ErrClosed
	}
	select {
	case l.out <- bytes.Clone(p):
		return len(p), nil
	default:
		l.full = true
		return 0, nil
	}
}

func (l *link) Dialect() schema.Dialect { return schema.OsMessage }

func (l *link) LineLimit() int { return schema.MaxLine }

// send gives the kernel frames.
func (l *link) send(frames []byte) {
	l.change(func() { l.in = append(l.in, frames) }, poll.In)
}

// received tells the kernel that there is room in out, where it waits for some.
func (l *link) received() {
	var now poll.Event
	l.mu.Lock()
	if l.full {
		now = poll.Out
	}
	l.full = false
	tell := l.ready
	l.mu.Unlock()
	if now != 0 {
		tell(now)
	}
}

// finish ends the peer's side: this peer goes altogether when it ends.
func (l *link) finish() { l.change(func() { l.ended = true }, poll.In|poll.Hup) }

func (l *link) Interrupt() { l.change(func() { l.stopped = true }, poll.In) }

func (l *link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

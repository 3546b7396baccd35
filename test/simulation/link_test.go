package simulation_test

import (
	"io"
	"net"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// link is a connection in memory. Sent data is in flight until arrive is called; written data takes room until the peer reads it. The
// oracle reads written data earlier, from said.
type link struct {
	lines *schema.LineReader
	limit int // line limit in bytes
	ready func(poll.Event)
	chunk func(most int) int // draws how many bytes one read or write moves, at least 1

	flying []byte // sent, not yet arrived
	in     []byte // arrived, not yet read by the kernel
	taken  int    // number of bytes that the kernel has read
	unread int    // number of bytes that the kernel has written and the peer has not read
	said   []byte // written by the kernel, not yet seen by the oracle
	ended  bool   // the peer sends no more
	cut    bool   // it was reset or interrupted
	full   bool   // a write was short: ready must be called when there is room
}

var _ actors.Link = (*link)(nil)

// mostRead is the most bytes that one read returns.
const mostRead = 4 << 10

// room is the most bytes that a link buffers for the peer.
const room = 2 << 10

func newLink(limit int, chunk func(most int) int) *link {
	return &link{lines: schema.NewLineReader(nil, limit), limit: limit, chunk: chunk}
}

func (l *link) Open(_ poll.Poller, ready func(poll.Event)) error {
	l.ready = ready
	ready(poll.In)
	return nil
}

func (l *link) Fill() (more bool) { return l.lines.Fill(l) }

// ReadOnce implements schema.Source.
func (l *link) ReadOnce(p []byte) (n int, more bool, err error) {
	switch {
	case l.cut:
		return 0, false, net.ErrClosed
	case len(l.in) > 0:
		n = copy(p, l.in[:l.chunk(min(len(l.in), mostRead))])
		l.in = l.in[n:]
		l.taken += n
		return n, len(l.in) > 0 || l.over(), nil
	case l.over():
		return 0, false, io.EOF
	}
	return 0, false, nil
}

func (l *link) over() bool { return l.ended && len(l.flying) == 0 }

func (l *link) Next() (line []byte, ok bool, err error) { return l.lines.TryNext() }

func (l *link) Write(p []byte) (int, error) {
	if l.cut {
		return 0, net.ErrClosed
	}
	n := min(len(p), room-l.unread)
	if n > 0 {
		n = min(n, l.chunk(n))
	}
	l.said = append(l.said, p[:n]...)
	l.unread += n
	l.full = n < len(p)
	return n, nil
}

func (l *link) Dialect() schema.Dialect { return schema.OsMessage }

func (l *link) LineLimit() int { return l.limit }

func (l *link) Interrupt() { l.reset() }

func (l *link) Close() error {
	l.cut = true
	return nil
}

// arrive makes n bytes that are in flight available to the kernel.
func (l *link) arrive(n int) {
	l.in = append(l.in, l.flying[:n]...)
	l.flying = l.flying[n:]
	l.tell(poll.In)
}

// end closes the peer's sending side.
func (l *link) end() {
	l.ended = true
	l.tell(poll.In)
}

// reset breaks the connection.
func (l *link) reset() {
	l.cut = true
	l.tell(poll.In | poll.Out | poll.Hup)
}

// read makes the peer read n bytes. It signals room to the kernel after a short write.
func (l *link) read(n int) {
	l.unread -= n
	if l.full && l.unread < room {
		l.full = false
		l.tell(poll.Out)
	}
}

func (l *link) tell(e poll.Event) {
	if l.ready != nil {
		l.ready(e)
	}
}

// idlePoller is the kernel's poller. It does nothing, since links signal events themselves.
type idlePoller struct{ poll.Poller }

func (idlePoller) Wait(time.Duration, func()) error { return nil }

func (idlePoller) Wake() {}

func (idlePoller) Close() error { return nil }

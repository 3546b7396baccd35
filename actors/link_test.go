package actors_test

import (
	"net"
	"os"
	"sync/atomic"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/schema"
)

// link is a channel in memory: what a socket would be, with a peer whose pace the test decides.
type link struct {
	in, out *stream
	lines   *schema.LineReader
	dialect schema.Dialect
	limit   int

	taken    atomic.Int64 // lines that were handed out
	tryWrite func()       // called by TryWrite first, where it is set
	breaks   func()       // called by the first Interrupt, where it is set
}

var (
	_ actors.Link   = (*link)(nil)
	_ schema.Filler = (*link)(nil)
)

// newLink returns a link that takes capacity bytes of output before its peer reads.
func newLink(dialect schema.Dialect, limit, capacity int) *link {
	l := &link{in: newStream(unbounded), out: newStream(capacity), dialect: dialect, limit: limit}
	l.lines = schema.NewLineReader(l, limit)
	return l
}

func (l *link) Next() ([]byte, error) {
	line, err := l.lines.Next()
	l.taken.Add(1)
	return line, err
}

func (l *link) TryNext() ([]byte, bool, error) {
	line, ok, err := l.lines.TryNext()
	if ok {
		l.taken.Add(1)
	}
	return line, ok, err
}

func (l *link) Read(p []byte) (int, error) { return l.in.Read(p) }

// Fill holds no buffer while it waits, as a socket's does.
func (l *link) Fill(get func() []byte, put func([]byte)) ([]byte, error) {
	if err := l.in.await(); err != nil {
		return nil, err
	}
	buf := get()
	n, err := l.in.Read(buf)
	if err != nil {
		put(buf)
		return nil, err
	}
	return buf[:n], nil
}

func (l *link) TryWrite(p []byte) (int, error) {
	if l.tryWrite != nil {
		l.tryWrite()
	}
	return l.out.write(p, false)
}

func (l *link) Write(p []byte) (int, error) { return l.out.write(p, true) }

func (l *link) Dialect() schema.Dialect { return l.dialect }

func (l *link) LineLimit() int { return l.limit }

// AwaitHangup waits for Close or Interrupt: this link's peer never vanishes otherwise.
func (l *link) AwaitHangup() {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	for l.in.cut == nil {
		l.in.changed.Wait()
	}
}

// Interrupt leaves what was sent but not received yet where it is, as a read deadline does.
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

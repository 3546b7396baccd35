package authority_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/schema"
)

// link is a channel in memory. What one side sends in one go the other gets in one go.
type link struct {
	in   chan []byte // frames for the kernel, one or more lines
	out  chan []byte // answers, as the kernel wrote them
	rest []byte      // of in, not handed out yet

	ended   chan struct{} // the peer sends no more
	end     sync.Once
	stopped chan struct{} // interrupted or closed
	stop    sync.Once
}

var _ actors.Link = (*link)(nil)

// room is how many writes each direction holds before its writer waits.
const room = 4

func newLink() *link {
	return &link{
		in: make(chan []byte, room), out: make(chan []byte, room),
		ended: make(chan struct{}), stopped: make(chan struct{}),
	}
}

// errEnded is what the kernel reads after the peer's last frame.
var errEnded = errors.New("peer has ended its side")

func (l *link) Next() ([]byte, error) {
	for len(l.rest) == 0 {
		select {
		case l.rest = <-l.in:
		case <-l.stopped:
			return nil, os.ErrDeadlineExceeded
		case <-l.ended:
			select {
			case l.rest = <-l.in: // sent before the end
			default:
				return nil, errEnded
			}
		}
	}
	line, rest, _ := bytes.Cut(l.rest, []byte("\n"))
	l.rest = rest
	return line, nil
}

func (l *link) TryNext() ([]byte, bool, error) {
	if len(l.rest) == 0 {
		select {
		case l.rest = <-l.in:
		default:
			return nil, false, nil
		}
	}
	line, err := l.Next()
	return line, true, err
}

func (l *link) TryWrite(p []byte) (int, error) {
	select {
	case l.out <- bytes.Clone(p):
		return len(p), nil
	case <-l.stopped:
		return 0, net.ErrClosed
	default:
		return 0, nil
	}
}

func (l *link) Write(p []byte) (int, error) {
	select {
	case l.out <- bytes.Clone(p):
		return len(p), nil
	case <-l.stopped:
		return 0, net.ErrClosed
	}
}

func (l *link) Dialect() schema.Dialect { return schema.OsMessage }

func (l *link) LineLimit() int { return schema.MaxLine }

// AwaitHangup waits for the end of the peer's side: this peer goes altogether when it ends.
func (l *link) AwaitHangup() {
	select {
	case <-l.ended:
	case <-l.stopped:
	}
}

// finish half-closes from the peer's side.
func (l *link) finish() { l.end.Do(func() { close(l.ended) }) }

func (l *link) Interrupt() { l.stop.Do(func() { close(l.stopped) }) }

func (l *link) Close() error {
	l.Interrupt()
	return nil
}

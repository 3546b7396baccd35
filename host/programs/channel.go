package programs

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Channel is a program's connection to the kernel. A program that has closed its output may
// continue to read: the connection ends only with the program.
type Channel struct {
	*unixsock.Link
	gone    <-chan struct{}
	closed  chan struct{}
	close   func()
	watched *sync.WaitGroup // waits for gone or closed
}

// NewChannel makes the connection of a program that has ended when gone is closed. watched waits for what it starts.
func NewChannel(conn *unixsock.Conn, gone <-chan struct{}, watched *sync.WaitGroup) *Channel {
	c := &Channel{Link: conn.Link(), gone: gone, closed: make(chan struct{}), watched: watched}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	return c
}

// Connect leads a program through the prologue.
func (p *Programs) Connect(program *host.Process) (*Channel, error) {
	conn, err := unixsock.NewPairedConn(program.Conn(), schema.OsMessage, p.Line, program.Done())
	if err != nil {
		return nil, err
	}
	if err := greet(program, conn); err != nil {
		return nil, err
	}
	return NewChannel(conn, program.Done(), &p.watched), nil
}

// Open implements the kernel's Link.
func (c *Channel) Open(p poll.Poller, ready func(poll.Event)) error {
	if err := c.Link.Open(p, ready); err != nil {
		return err
	}
	c.watched.Go(func() {
		select {
		case <-c.gone:
			c.Gone()
		case <-c.closed:
		}
	})
	return nil
}

// Write implements the kernel's Link. Once the program has ended, it does not wait for room:
// another process may keep the program's end open.
func (c *Channel) Write(p []byte) (int, error) {
	n, err := c.Link.Write(p)
	n, err = unheard(p, n, err)
	if n < len(p) && err == nil {
		select {
		case <-c.gone:
			return len(p), nil
		default:
		}
	}
	return n, err
}

// Close implements the kernel's Link.
func (c *Channel) Close() error {
	c.close()
	return c.Link.Close()
}

// unheard makes nothing of a program that does not listen any more: what it has said is heard all the same, to the last
// line before its end. A deadline there is only once it has ended, where somebody else holds its end of the channel.
func unheard(p []byte, n int, err error) (int, error) {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, os.ErrDeadlineExceeded) {
		return len(p), nil
	}
	return n, err
}

// prologue is a channel before it is opened.
type prologue struct{ *unixsock.Conn }

// Write writes all of p, waiting for the program.
func (c prologue) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return unheard(p, n, err)
}

// greet leads a program through the prologue.
func greet(program *host.Process, conn *unixsock.Conn) error {
	if program.Channel() == host.ChannelStdio {
		return greetStdio(program, prologue{conn})
	}
	return access.Greet(prologue{conn}, nil)
}

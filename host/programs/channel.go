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

// Channel is a program's connection to the kernel. A program that has closed its output may still read, so the connection
// ends only with the program.
type Channel struct {
	*unixsock.Link
	gone    <-chan struct{}
	closed  chan struct{}
	close   func()
	watched *sync.WaitGroup // waits for the program's end or the close
}

// NewChannel returns the connection of a program that has ended when gone is closed. watched counts the goroutine that it
// starts.
func NewChannel(conn *unixsock.Conn, gone <-chan struct{}, watched *sync.WaitGroup) *Channel {
	c := &Channel{Link: conn.Link(), gone: gone, closed: make(chan struct{}), watched: watched}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	return c
}

// Connect runs the prologue with a program.
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

// Write implements the kernel's Link. After the end of the program it does not wait for room, since another process may
// keep the program's end open.
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

// unheard hides the error of a write to a program that does not read any more, so that its own frames are still read up to
// its end. The deadline is only set after its end, if another process has its end of the channel open.
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

// greet runs the prologue with a program.
func greet(program *host.Process, conn *unixsock.Conn) error {
	if program.Channel() == host.ChannelStdio {
		return greetStdio(program, prologue{conn})
	}
	return access.Greet(prologue{conn}, nil)
}

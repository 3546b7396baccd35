package daemon

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// channel is a program's connection to the kernel. A program that has ended its output may go on to read: it is gone only
// when it has ended.
type channel struct {
	*unixsock.Conn
	gone        <-chan struct{}
	interrupted chan struct{}
	once        sync.Once
}

// connect leads a program through the prologue.
func (p *programs) connect(program *host.Process) (actors.Link, error) {
	conn, err := unixsock.NewPairedConn(program.Conn(), schema.OsMessage, p.limit, program.Done())
	if err != nil {
		return nil, err
	}
	c := &channel{Conn: conn, gone: program.Done(), interrupted: make(chan struct{})}
	if program.Channel() == host.ChannelStdio {
		err = greetStdio(program, c)
	} else {
		err = unixsock.Greet(c, nil)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// TryWrite implements actors.Link.
func (c *channel) TryWrite(p []byte) (int, error) {
	n, err := c.Conn.TryWrite(p)
	return unheard(p, n, err)
}

// Write implements actors.Link.
func (c *channel) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return unheard(p, n, err)
}

// unheard makes nothing of a program that does not listen any more: what it has said is heard all the same, to the last
// line before its end. A deadline there is only once it has ended, where somebody else holds its end of the channel.
func unheard(p []byte, n int, err error) (int, error) {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, os.ErrDeadlineExceeded) {
		return len(p), nil
	}
	return n, err
}

// AwaitHangup implements actors.Link.
func (c *channel) AwaitHangup() {
	select {
	case <-c.gone:
	case <-c.interrupted:
	}
}

// Interrupt implements actors.Link.
func (c *channel) Interrupt() {
	c.once.Do(func() { close(c.interrupted) })
	c.Conn.Interrupt()
}

// Close implements actors.Link.
func (c *channel) Close() error {
	c.once.Do(func() { close(c.interrupted) })
	return c.Conn.Close()
}

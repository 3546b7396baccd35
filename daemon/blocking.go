package daemon

import (
	"sync"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// blockingChannel is a program's connection to the kernel. A program that has ended its output may go on to read: it is gone only
// when it has ended.
type blockingChannel struct {
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
	if err := greet(program, conn); err != nil {
		return nil, err
	}
	return &blockingChannel{Conn: conn, gone: program.Done(), interrupted: make(chan struct{})}, nil
}

// TryWrite implements actors.Link.
func (c *blockingChannel) TryWrite(p []byte) (int, error) {
	n, err := c.Conn.TryWrite(p)
	return unheard(p, n, err)
}

// Write implements actors.Link.
func (c *blockingChannel) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return unheard(p, n, err)
}

// AwaitHangup implements actors.Link.
func (c *blockingChannel) AwaitHangup() {
	select {
	case <-c.gone:
	case <-c.interrupted:
	}
}

// Interrupt implements actors.Link.
func (c *blockingChannel) Interrupt() {
	c.once.Do(func() { close(c.interrupted) })
	c.Conn.Interrupt()
}

// Close implements actors.Link.
func (c *blockingChannel) Close() error {
	c.once.Do(func() { close(c.interrupted) })
	return c.Conn.Close()
}

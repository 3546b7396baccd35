package daemon

import (
	"errors"
	"sync"
	"syscall"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// channel is a program's connection to the kernel. A program that has ended its output may go on to read: it is gone only
// when it has ended.
type channel struct {
	*unixsock.Link
	gone   <-chan struct{}
	closed chan struct{}
	once   sync.Once
}

// connect leads a program through the prologue.
func (p *programs) connect(program *host.Process) (actors.Link, error) {
	conn, err := unixsock.NewPairedConn(program.Conn(), schema.OsMessage, p.limit, program.Done())
	if err != nil {
		return nil, err
	}
	if program.Channel() == host.ChannelStdio {
		err = greetStdio(program, conn)
	} else {
		err = unixsock.Greet(conn, nil)
	}
	if err != nil {
		return nil, err
	}
	return &channel{Link: conn.Link(), gone: program.Done(), closed: make(chan struct{})}, nil
}

// Open implements actors.Link. Where the program has ended, so has its input, whoever was handed the other end of its channel.
func (c *channel) Open(p poll.Poller, ready func(poll.Event)) error {
	if err := c.Link.Open(p, ready); err != nil {
		return err
	}
	go func() {
		select {
		case <-c.gone:
			c.Gone()
		case <-c.closed:
		}
	}()
	return nil
}

// Write implements actors.Link. It makes nothing of a program that does not listen any more: what it has said is heard all the
// same, to the last line before its end.
func (c *channel) Write(p []byte) (int, error) {
	n, err := c.Link.Write(p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return len(p), nil
	}
	return n, err
}

// Close implements actors.Link.
func (c *channel) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Link.Close()
}

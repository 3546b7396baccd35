package egress

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"sync"

	"github.com/promptware-os/pwos/effect/fetch"
)

// limitListener is a listener that closes connections beyond the limits of an agent or of all agents.
type limitListener struct {
	net.Listener
	agent *agent
}

// Accept returns a *agentConn.
func (b *limitListener) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.agent.admit() {
			return &agentConn{Conn: conn, agent: b.agent}, nil
		}
		_ = conn.Close() // beyond a limit
	}
}

func (a *agent) admit() bool {
	if a.conns.Add(1) > int64(a.Limits.Each) {
		a.conns.Add(-1)
		return false
	}
	if a.total.Add(1) > int64(a.Limits.All) {
		a.total.Add(-1)
		a.conns.Add(-1)
		return false
	}
	return true
}

// agentConn is a connection of an agent that counts against the limits until it is closed.
type agentConn struct {
	net.Conn
	agent *agent
	once  sync.Once
}

// Close closes the connection, which then no longer counts.
func (c *agentConn) Close() error {
	c.once.Do(func() {
		c.agent.conns.Add(-1)
		c.agent.total.Add(-1)
	})
	return c.Conn.Close()
}

// CloseWrite closes the sending direction of the connection.
func (c *agentConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite closes the sending direction of a connection. It does nothing if the connection does not support that.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// begun is a connection of which some bytes are in a buffer.
type begun struct {
	net.Conn
	r *bufio.Reader
}

func (b *begun) Read(p []byte) (int, error) { return b.r.Read(p) }

// CloseWrite closes the sending direction of the connection.
func (b *begun) CloseWrite() error { return closeWrite(b.Conn) }

// bound is a connection whose destination is known before its first request.
type bound struct {
	net.Conn
	to fetch.Endpoint
}

// destinationKey is the context key of a request's fetch.Endpoint.
type destinationKey struct{}

// connQueue is a listener for connections that other code has accepted.
type connQueue struct {
	conns chan net.Conn
	ctx   context.Context
	stop  context.CancelFunc
}

func newConnQueue(ctx context.Context) *connQueue {
	h := &connQueue{conns: make(chan net.Conn)}
	h.ctx, h.stop = context.WithCancel(ctx)
	return h
}

// push passes a connection to Accept. It closes the connection if the queue is closed.
func (h *connQueue) push(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.ctx.Done():
		_ = c.Close()
	}
}

// Accept implements net.Listener.
func (h *connQueue) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *connQueue) Close() error {
	h.stop()
	return nil
}

// Addr implements net.Listener.
func (h *connQueue) Addr() net.Addr { return &net.TCPAddr{} }

// replay returns a reader of read followed by r.
func replay(read []byte, r *bufio.Reader) *bufio.Reader {
	return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(read), r), 4<<10)
}

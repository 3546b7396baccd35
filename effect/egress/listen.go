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

// limitListener closes connections beyond the bounds of an agent, and of all agents.
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
		_ = conn.Close() // its bound
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

// agentConn is a connection of an agent that counts until it is closed.
type agentConn struct {
	net.Conn
	agent *agent
	once  sync.Once
}

// Close closes the connection and releases its place.
func (c *agentConn) Close() error {
	c.once.Do(func() {
		c.agent.conns.Add(-1)
		c.agent.total.Add(-1)
	})
	return c.Conn.Close()
}

// CloseWrite ends what is sent on the connection.
func (c *agentConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite half-closes a connection if it supports that.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// begun is a connection of which some bytes have been read.
type begun struct {
	net.Conn
	r *bufio.Reader
}

func (b *begun) Read(p []byte) (int, error) { return b.r.Read(p) }

// CloseWrite ends what is sent on the connection.
func (b *begun) CloseWrite() error { return closeWrite(b.Conn) }

// bound is a connection to a host that was chosen before its first request.
type bound struct {
	net.Conn
	to fetch.Endpoint
}

// destinationKey is the context key of a request's fetch.Endpoint.
type destinationKey struct{}

// connQueue is a listener whose connections were accepted elsewhere.
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

// push passes a connection to Accept. After Close it closes the connection.
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

// replay is a reader of bytes that were read before, and then of the rest.
func replay(read []byte, r *bufio.Reader) *bufio.Reader {
	return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(read), r), 4<<10)
}

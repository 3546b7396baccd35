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

// bounded closes connections beyond what an agent, or all of them, may have.
type bounded struct {
	net.Listener
	agent *agent
}

// Accept returns a *held.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.agent.take() {
			return &held{Conn: conn, agent: b.agent}, nil
		}
		_ = conn.Close() // its bound
	}
}

func (a *agent) take() bool {
	if a.conns.Add(1) > int64(a.Limits.Each) {
		a.conns.Add(-1)
		return false
	}
	if a.held.Add(1) > int64(a.Limits.All) {
		a.held.Add(-1)
		a.conns.Add(-1)
		return false
	}
	return true
}

// held is a connection of an agent that counts until it is closed.
type held struct {
	net.Conn
	agent *agent
	once  sync.Once
}

// Close closes the connection and gives its place back.
func (h *held) Close() error {
	h.once.Do(func() {
		h.agent.conns.Add(-1)
		h.agent.held.Add(-1)
	})
	return h.Conn.Close()
}

// CloseWrite ends what is sent on the connection.
func (h *held) CloseWrite() error { return closeWrite(h.Conn) }

// closeWrite half-closes a connection, where it can be.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// begun is a connection of which some bytes were read already.
type begun struct {
	net.Conn
	r *bufio.Reader
}

func (b *begun) Read(p []byte) (int, error) { return b.r.Read(p) }

// CloseWrite ends what is sent on the connection.
func (b *begun) CloseWrite() error { return closeWrite(b.Conn) }

// bound is a connection to a host that was settled before its first request.
type bound struct {
	net.Conn
	to fetch.Endpoint
}

// destinationKey is the key of a request's fetch.Endpoint, where its connection has one.
type destinationKey struct{}

// handed is a listener whose connections were accepted elsewhere.
type handed struct {
	conns chan net.Conn
	ctx   context.Context
	stop  context.CancelFunc
}

func newHanded(ctx context.Context) *handed {
	h := &handed{conns: make(chan net.Conn)}
	h.ctx, h.stop = context.WithCancel(ctx)
	return h
}

// hand gives a connection to whoever accepts. Where nobody does any more it is closed.
func (h *handed) hand(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.ctx.Done():
		_ = c.Close()
	}
}

// Accept implements net.Listener.
func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handed) Close() error {
	h.stop()
	return nil
}

// Addr implements net.Listener.
func (h *handed) Addr() net.Addr { return &net.TCPAddr{} }

// replay is a reader of what was read already and of what comes after it.
func replay(read []byte, r *bufio.Reader) *bufio.Reader {
	return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(read), r), 4<<10)
}

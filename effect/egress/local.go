package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// loopbacks are the addresses that localhost may mean, in the order in which they are tried.
func loopbacks() []string { return []string{"127.0.0.1", "::1"} }

// dialLocal connects to a port of this machine's loopback.
func dialLocal(ctx context.Context, port uint16) (conn net.Conn, err error) {
	var d net.Dialer
	for _, ip := range loopbacks() {
		if conn, err = d.DialContext(ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(int(port)))); err == nil {
			break
		}
	}
	return conn, err
}

// portOf returns the port of an address.
func portOf(at net.Addr) uint16 {
	if at, ok := at.(*net.TCPAddr); ok {
		return uint16(at.Port)
	}
	return 0
}

// serveLocal connects an agent to the service of this machine's loopback with the port that it has connected to.
func (a *agent) serveLocal(c *agentConn) {
	port := portOf(c.LocalAddr())
	in := &schema.NetConnectInput{Host: "localhost", Port: int64(port), Local: true}
	if a.publishes(port) {
		in.Refused = "it leads to an agent, which publishes it"
	}
	err := a.connected(a.by(a.ctx, c), in, func(ctx context.Context) (*ending, error) {
		g, ctx, done := a.guard(ctx, func() bool { g := a.current(); return g.token.AllowsLocalhost(port, g.tick) })
		defer done()
		server, err := a.DialLocal(ctx, port)
		if err != nil {
			return nil, a.why(ctx, fault.NetUnreachable.New("nothing listens on port %d of this machine's loopback", port))
		}
		return a.pass(ctx, g, c, server)
	})
	c.end(err)
}

// pass copies bytes between two ends of this machine.
func (a *agent) pass(ctx context.Context, g *guarded, client, server net.Conn) (*ending, error) {
	t := &tunnel{guarded: g, agent: a, client: client, from: bufio.NewReaderSize(client, 4<<10), server: server, end: &ending{}, opaque: true}
	defer t.close()
	defer context.AfterFunc(ctx, t.close)()
	return t.end, t.run(ctx)
}

// end closes a connection. After an error its client is told that it broke, not that it ended.
func (c *agentConn) end(err error) {
	if tcp, ok := c.Conn.(*net.TCPConn); ok && err != nil {
		_ = tcp.SetLinger(0) // its error changes nothing
	}
	_ = c.Close()
}

// Published is a port of this machine's loopback that leads to a port of an agent.
type Published struct {
	server    *Server
	port      uint16
	inside    uint16
	listeners []net.Listener
}

// Listen listens on this machine's loopback for the ports that an agent publishes. Serve takes them over.
func (s *Server) Listen(ports []string) (list []*Published, err error) {
	for _, text := range ports {
		p := &Published{server: s}
		if p.port, p.inside, err = schema.ParsePublished(text); err == nil {
			s.take(p.port, 1)
			list = append(list, p)
			err = p.listen()
		}
		if err != nil {
			for _, p := range list {
				p.close()
			}
			return nil, err
		}
	}
	return list, nil
}

func (p *Published) listen() error {
	for _, ip := range loopbacks() {
		l, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(int(p.port))))
		switch {
		case err == nil:
			p.listeners = append(p.listeners, l)
		case errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("publish port %d: another program of this machine has it: choose one that is free, as in --publish PORT:%d", p.port, p.inside)
		case len(p.listeners) == 0: // else there is no IPv6
			return fmt.Errorf("publish port %d: %w", p.port, errors.Unwrap(err))
		}
	}
	return nil
}

// close frees the port.
func (p *Published) close() {
	for _, l := range p.listeners {
		_ = l.Close() // closed twice, or unused
	}
	p.server.take(p.port, -1)
}

// publishes reports whether an agent has a port of this machine.
func (s *Server) publishes(port uint16) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken[port] > 0
}

func (s *Server) take(port uint16, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[port] += n; s.taken[port] == 0 {
		delete(s.taken, port)
	}
}

// publish serves a port that the agent publishes, until the agent ends.
func (a *agent) publish(p *Published) {
	defer p.close()
	in := &schema.NetPublishInput{Port: int64(p.port), Inside: int64(p.inside)}
	_, err := a.Journal(a.ctx, a.pid, schema.NetPublish.With(in), func(context.Context) ([]byte, error) {
		var sum tally
		var serving sync.WaitGroup
		for _, l := range p.listeners {
			serving.Go(func() { a.acceptPublished(l, p.inside, &sum) })
		}
		serving.Wait()
		return schema.Marshal(&schema.NetPublishOutput{
			Port: in.Port, Connections: sum.connections.Load(), Sent: sum.sent.Load(), Received: sum.received.Load(), Ended: said(context.Cause(a.ctx)),
		})
	})
	if err != nil {
		a.Log.Warn("port is not published", "pid", a.pid, "port", p.port, "error", err)
	}
}

// tally counts the connections to a published port, and their bytes from and to the agent.
type tally struct{ connections, sent, received atomic.Int64 }

// acceptPublished connects the clients of a listener to a port of the agent, until the listener is closed. It returns after
// all connections have ended.
func (a *agent) acceptPublished(l net.Listener, inside uint16, sum *tally) {
	var serving sync.WaitGroup
	defer serving.Wait()
	in := &limitListener{l, a}
	for {
		conn, err := in.Accept()
		switch {
		case a.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				_ = conn.Close()
			}
			return
		case err != nil:
			a.pause()
			continue
		}
		sum.connections.Add(1)
		serving.Go(func() {
			c := conn.(*agentConn)
			g, ctx, done := a.guard(a.ctx, func() bool { return true })
			defer done()
			server, err := a.sockets.Dialer.Dial(ctx, inside)
			if err == nil {
				var end *ending
				end, err = a.pass(ctx, g, c, server)
				sum.received.Add(end.sent.Load())
				sum.sent.Add(end.received.Load())
			}
			c.end(err)
		})
	}
}

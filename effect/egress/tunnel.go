package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/schema/fault"
)

// ending has what the journal records at the end of a connection.
type ending struct {
	sent, received atomic.Int64
	why            string
}

// tunnel copies bytes between a client and a host.
type tunnel struct {
	*guarded
	agent  *agent
	to     fetch.Endpoint
	client net.Conn
	from   *bufio.Reader // of the client
	server net.Conn
	end    *ending
	last   timestamp     // of the last byte in either direction
	idle   time.Duration // without one; 0: any time
	opaque bool          // neither side of it is another machine, so that it is not checked
}

// tunnelTo connects a client to a host. It calls ready after it has connected to the host; ready returns the client and a reader of
// its bytes. A client of port 443 that sends no TLS, or a client whose TLS has another server name, is refused before the host gets a
// byte.
func (a *agent) tunnelTo(ctx context.Context, to fetch.Endpoint, ready func() (net.Conn, *bufio.Reader, error)) error {
	return a.reach(ctx, to, func(ctx context.Context, g *guarded, server net.Conn) (*ending, error) {
		client, from, err := ready()
		if err != nil {
			return nil, fault.CallCancelled.New("the agent hung up before %s was connected", to)
		}
		t := &tunnel{guarded: g, agent: a, to: to, client: client, from: from, server: server, end: &ending{}, idle: a.Limits.Idle}
		defer context.AfterFunc(ctx, t.close)()
		if err := t.run(ctx); err != nil {
			return nil, err
		}
		return t.end, nil
	})
}

func (t *tunnel) close() {
	_ = t.client.Close()
	_ = t.server.Close()
}

// Reasons why a connection ended.
var (
	errIdle   = errors.New("idle")
	errClient = errors.New("the agent broke the connection")
	errServer = errors.New("the host broke the connection")
)

// run copies bytes in both directions until both sides have ended or one has failed. Its error is a refusal.
func (t *tunnel) run(ctx context.Context) error {
	t.last.touch()
	var answers sync.WaitGroup
	answers.Go(func() { t.copy(t.client, t.server, t.server, &t.end.received, errServer, errClient) })
	var refused error
	if !t.opaque {
		refused = t.first()
	}
	if refused == nil {
		t.copy(t.server, t.from, t.client, &t.end.sent, errClient, errServer)
	} else {
		t.cancel(refused)
		t.close()
	}
	answers.Wait()
	if refused != nil {
		return refused
	}
	t.end.why = said(context.Cause(ctx))
	return nil
}

// said returns the text of a reason for the journal.
func said(cause error) string {
	if cause == nil {
		return "both sides had ended"
	}
	if shown, ok := errors.AsType[*fault.Fault](cause); ok {
		return shown.Text()
	}
	return cause.Error()
}

// first checks the client's first bytes, and sends a TLS ClientHello to the host.
func (t *tunnel) first() error {
	must := t.to.Port() == 443
	start, err := t.begins(must)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) && must:
		return fault.NetTimeout.New("the agent did not begin TLS with %s within %v", t.to, t.agent.Limits.Hello)
	case errors.Is(err, os.ErrDeadlineExceeded):
		t.cancel(errIdle)
		return nil
	case err != nil:
		return nil // copy reports the error
	case start != recordHandshake && must:
		return fault.NetNotTLS.New("pid %d may not send %s what is no TLS: on port 443 nothing else is passed on", t.agent.pid, t.to)
	case start != recordHandshake:
		return nil
	}
	_ = t.client.SetReadDeadline(time.Now().Add(t.agent.Limits.Hello))
	name, hello, err := peekHello(t.from)
	if err != nil {
		return fault.NetNotTLS.New("the agent sent %s a TLS ClientHello that cannot be read", t.to)
	}
	if refused := t.agent.asks(t.to, name); refused != "" {
		return fault.NetNotTLS.New("pid %d may not connect to %s: %s", t.agent.pid, t.to, refused)
	}
	_ = t.client.SetReadDeadline(time.Time{})
	if !t.check() {
		return nil // the connection is canceled
	}
	_ = t.server.SetWriteDeadline(time.Now().Add(t.agent.Limits.Idle))
	if n, err := t.server.Write(hello); err != nil {
		t.end.sent.Add(int64(n))
		t.cancel(errServer)
		return nil
	}
	t.end.sent.Add(int64(len(hello)))
	return nil
}

// begins returns the client's first byte. If must is true, the client must send it within Limits.Hello; otherwise the host may send
// first, and the limit is Limits.Idle without a byte in either direction.
func (t *tunnel) begins(must bool) (byte, error) {
	wait := t.agent.Limits.Idle
	if must {
		wait = t.agent.Limits.Hello
	}
	for {
		_ = t.client.SetReadDeadline(time.Now().Add(wait))
		start, err := t.from.Peek(1)
		if err == nil {
			return start[0], nil
		}
		if must || !errors.Is(err, os.ErrDeadlineExceeded) || !t.last.within(wait) {
			return 0, err
		}
	}
}

// asks returns why TLS with a server name is refused for e, or "". An address needs no server name.
func (a *agent) asks(e fetch.Endpoint, name string) string {
	switch {
	case e.IsAddr() && name == "":
		return ""
	case name == "":
		return "TLS asked for no name: it must ask for the host that was allowed"
	case name != e.Host():
		return "TLS asked for another name, " + printable(name)
	}
	return ""
}

// printable returns a server name of an agent in a form for the journal.
func printable(name string) string {
	if e, err := fetch.ParseEndpoint(name, 443); err == nil {
		return e.Host()
	}
	return "which is no host's"
}

// fullCopy is the size of the buffer for a connection that fills a smaller one: few calls of the system for much data, and little
// memory for many connections.
const fullCopy = 128 << 10

// copy copies bytes of one direction until the source ends, and then closes the sending direction of dst. conn is the
// connection of the source. lost is the reason if the source fails, unheard if dst fails.
func (t *tunnel) copy(dst net.Conn, src io.Reader, conn net.Conn, count *atomic.Int64, lost, unheard error) {
	deadline := func() (at time.Time) {
		if t.idle > 0 {
			at = time.Now().Add(t.idle)
		}
		return at
	}
	buf := make([]byte, 16<<10)
	for {
		_ = conn.SetReadDeadline(deadline())
		n, err := src.Read(buf)
		if n > 0 {
			if !t.check() {
				return
			}
			t.last.touch()
			_ = dst.SetWriteDeadline(deadline())
			m, err := dst.Write(buf[:n])
			count.Add(int64(m))
			if err != nil {
				t.cancel(unheard)
				t.close()
				return
			}
			t.last.touch()
		}
		if n == len(buf) && n < fullCopy {
			buf = make([]byte, fullCopy)
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && t.last.within(t.idle):
		case errors.Is(err, os.ErrDeadlineExceeded):
			t.cancel(errIdle)
			t.close()
			return
		case errors.Is(err, io.EOF):
			if closeWrite(dst) != nil {
				t.cancel(unheard)
				t.close()
			}
			return
		default:
			t.cancel(lost)
			t.close()
			return
		}
	}
}

// timestamp is a time that goroutines may update concurrently.
type timestamp struct{ at atomic.Int64 }

func (t *timestamp) touch()                      { t.at.Store(time.Now().UnixNano()) }
func (t *timestamp) within(d time.Duration) bool { return time.Since(time.Unix(0, t.at.Load())) < d }

package unixsock_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// TestHandlerThatReturnsBeforeTheEnd: a connection whose handler has returned has no goroutine. Until done is called it
// counts for its agent, and the server waits for it. The test is not parallel, since it counts goroutines.
func TestHandlerThatReturnsBeforeTheEnd(t *testing.T) {
	const conns = 20
	type handed struct {
		*unixsock.Conn
		done func()
	}
	served := make(chan handed, 1)
	server := start(t, unixsock.ServerConfig{
		Handler: func(_ context.Context, conn *unixsock.Conn, _ access.Peer, done func()) {
			served <- handed{conn, done}
		},
		// The logins make them connections of the agent.
		Authenticator: keyedAgent(7), Bounds: unixsock.Bounds{Connections: conns, Prologues: 1, Agents: 2 * conns},
	})
	enter := func() net.Conn {
		nc, err := unixsock.Dial(t.Context(), server.KernelSocket)
		must(t, err)
		t.Cleanup(func() { nc.Close() })
		must(t, readLine(nc))
		send(t, nc, replyMessage+"\n")
		return nc
	}
	var clients []net.Conn
	var ends []handed
	for range conns {
		clients = append(clients, enter())
		ends = append(ends, <-served)
	}
	const leading = "unixsock.(*Server).serve("
	for until := time.Now().Add(20 * time.Second); ; runtime.Gosched() { // the last goroutine may not have ended yet
		text := make([]byte, 1<<20)
		n := bytes.Count(text[:runtime.Stack(text, true)], []byte(leading))
		if n == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%d connections hold %d goroutines", conns, n)
		}
	}

	if text, err := io.ReadAll(enter()); err != nil || !strings.Contains(string(text), "20 connections") {
		t.Errorf("one too many read %q, %v", text, err)
	}
	ends[0].done()
	ends[0].done() // a second call has no effect
	if text, err := io.ReadAll(clients[0]); err != nil || len(text) != 0 {
		t.Errorf("the one that ended read %q, %v", text, err)
	}
	clients[0] = enter()
	ends[0] = <-served

	shut := make(chan error, 1)
	go func() { shut <- server.Shutdown(t.Context()) }()
	for i, end := range ends {
		select {
		case err := <-server.served:
			t.Errorf("the server has ended before a connection: %v", err)
		default:
		}
		_, err := end.Write([]byte("bye\n"))
		must(t, err)
		end.done()
		if text, err := io.ReadAll(clients[i]); err != nil || string(text) != "bye\n" {
			t.Errorf("at the end it read %q, %v", text, err)
		}
	}
	must(t, <-shut)
	must(t, <-server.served)
}

package egress_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// ownDialer connects to a server that stands for one inside.
type ownDialer struct{ ports map[uint16]string }

func (d ownDialer) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	var dialer net.Dialer
	if d.ports[port] == "" {
		return nil, errors.New("nothing listens")
	}
	return dialer.DialContext(ctx, "tcp", d.ports[port])
}

func (ownDialer) Close() error { return nil }

// echoing serves connections: it sends back what it gets.
func echoing(t *testing.T) net.Listener {
	t.Helper()
	l := listen(t)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return l
}

// free returns a port of this machine that is free on both of its loopback addresses.
func free(t *testing.T) string {
	t.Helper()
	l := listen(t)
	testkit.Must(t, l.Close())
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// says sends a text, and returns the answer.
func says(t *testing.T, address, text string) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(text))
	if err == nil {
		err = conn.(*net.TCPConn).CloseWrite()
	}
	if err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// serve serves an agent with one service of this machine and what it publishes. local is the address of the service inside.
func serve(t *testing.T, h *house, dialer ownDialer, ports ...string) (local string) {
	t.Helper()
	server := egress.New(egress.Config{Tokens: h, Tick: h.tick.Load, Dial: h.dial, Journal: h.journal, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(server.Close)
	list, err := server.Listen(ports)
	testkit.Must(t, err)
	service := echoing(t)
	inside, err := net.Listen("tcp", "127.0.0.2:"+strconv.Itoa(service.Addr().(*net.TCPAddr).Port)) // the same port
	testkit.Must(t, err)
	h.stop = server.Serve(pid, egress.Sockets{Locals: []net.Listener{inside}, Dialer: dialer}, egress.Own{Published: list})
	t.Cleanup(h.stop)
	return inside.Addr().String()
}

// TestLocal: an agent reaches a service of this machine that its token names, as long as it does. Each connection is
// journaled.
func TestLocal(t *testing.T) {
	t.Parallel()
	h := open(t)
	local := serve(t, h, ownDialer{})
	_, port, _ := net.SplitHostPort(local)
	if text, err := says(t, local, "hello"); text != "" || err == nil {
		t.Errorf("without a grant it answers %q, %v", text, err)
	}
	h.grant([]string{"*", "*:*", "localhost:" + port}, "*", "Localhost:1")
	if text, err := says(t, local, "hello"); text != "" || err == nil {
		t.Errorf("with other grants it answers %q, %v", text, err)
	}
	h.grant(nil, "Localhost:"+port)
	if text, err := says(t, local, "hello"); text != "hello" || err != nil {
		t.Errorf("it answers %q, %v", text, err)
	}
	entries := h.await(3)
	for i, e := range entries {
		in := e.in.(*schema.NetConnectInput)
		if !in.Local || in.Host != "localhost" || strconv.FormatInt(in.Port, 10) != port {
			t.Errorf("journaled %+v", in)
		}
		if i < 2 && (e.err == nil || !strings.Contains(e.err.Text(), "pwos cap grant 7 --add Localhost:"+port)) {
			t.Errorf("the refusal is %v", e.err)
		}
	}
	if want := `"sent":5,"received":5`; !strings.Contains(entries[2].data, want) {
		t.Errorf("journaled %s", entries[2].data)
	}

	conn, err := net.Dial("tcp", local)
	testkit.Must(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("x"))
	testkit.Must(t, err)
	_, err = io.ReadFull(conn, make([]byte, 1))
	testkit.Must(t, err)
	h.grant(nil)
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a revoked connection stays open")
	}
	h.stop()
	if e := h.await(4)[3]; !strings.Contains(e.data, "no longer allowed") {
		t.Errorf("journaled %s, %v", e.data, e.err)
	}
}

// TestPublish: clients on this machine's loopback reach an agent's port, on both addresses, until the agent ends. No other
// agent does through the kernel, and a port is published once.
func TestPublish(t *testing.T) {
	t.Parallel()
	h := open(t)
	port, closed := free(t), free(t)
	n, err := strconv.ParseUint(port, 10, 16)
	testkit.Must(t, err)
	server := egress.New(egress.Config{Tokens: h, Tick: h.tick.Load, Dial: h.dial, Journal: h.journal, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(server.Close)
	list, err := server.Listen([]string{port + ":3000", closed + ":3001"})
	testkit.Must(t, err)
	stop := server.Serve(pid, egress.Sockets{Dialer: ownDialer{map[uint16]string{3000: echoing(t).Addr().String()}}}, egress.Own{Published: list})
	defer stop()
	for range 2 {
		if text, err := says(t, "127.0.0.1:"+port, "hello"); text != "hello" || err != nil {
			t.Errorf("it answers %q, %v", text, err)
		}
	}
	if text, err := says(t, "127.0.0.1:"+closed, "hello"); text != "" || err == nil {
		t.Errorf("a port where nothing listens answers %q, %v", text, err)
	}
	if _, err := server.Listen([]string{free(t), port}); err == nil || !strings.Contains(err.Error(), "another program of this machine has it") {
		t.Errorf("a busy port: %v", err)
	}

	h.grant(nil, "Localhost:"+port)
	inside, err := net.Listen("tcp", "127.0.0.2:"+port)
	testkit.Must(t, err)
	other := server.Serve(pid, egress.Sockets{Locals: []net.Listener{inside}}, egress.Own{})
	defer other()
	if text, err := says(t, inside.Addr().String(), "hello"); text != "" || err == nil {
		t.Errorf("another agent gets %q, %v", text, err)
	}
	other()
	stop()
	if _, err := says(t, "127.0.0.1:"+port, "hello"); err == nil {
		t.Error("after its end the port is there")
	}
	again, err := server.Listen([]string{port})
	testkit.Must(t, err)
	server.Serve(pid, egress.Sockets{Dialer: ownDialer{}}, egress.Own{Published: again})()

	entries := h.await(4)
	var published, refused int
	for _, e := range entries {
		switch in := e.in.(type) {
		case *schema.NetPublishInput:
			published++
			if in.Port == int64(n) && in.Inside == 3000 && !strings.Contains(e.data, `"connections":2,"sent":10,"received":10,"ended":"the agent has ended"`) {
				t.Errorf("journaled %s", e.data)
			}
		case *schema.NetConnectInput:
			refused++
			if !errors.Is(e.err, fault.NetForbidden) || !strings.Contains(e.err.Text(), "which publishes it") {
				t.Errorf("another agent: %v", e.err)
			}
		}
	}
	if published != 3 || refused != 1 {
		t.Errorf("journaled %d ports and %d refusals: %+v", published, refused, entries)
	}
}

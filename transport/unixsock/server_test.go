package unixsock_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// What a client sends: its answer, and a question.
const (
	meta         = `,"metadata":{"id":"r1","timestamp":1,"correlation":"c1"}}`
	replyMessage = `{"kind":"reply","type":"Syscall.Authenticate","data":{}` + meta
	pingMessage  = `{"kind":"query","type":"Syscall.Ping","data":{"payload":1}` + meta
)

// dialConn dials path, in the canonical dialect.
func dialConn(t testing.TB, path string) (*net.UnixConn, *unixsock.Conn) {
	t.Helper()
	nc, err := unixsock.Dial(t.Context(), path)
	must(t, err)
	conn, err := unixsock.NewConn(nc, schema.OsMessage, schema.MaxLine)
	must(t, err)
	return nc, conn
}

// running is a server on both sockets of a place of its own.
type running struct {
	unixsock.Places
	*unixsock.Server
	log    *testkit.Buffer
	cancel context.CancelFunc
	served chan error
}

// start starts a server; the test's end stops it the hard way.
func start(t *testing.T, config unixsock.ServerConfig) *running {
	t.Helper()
	places, lock := locked(t)
	listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket, places.EventsSocket)
	must(t, err)
	log := &testkit.Buffer{}
	config.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	config.Endpoints = []unixsock.Endpoint{
		{Listener: listeners[0], Dialect: schema.OsMessage, MaxLine: schema.MaxLine},
		{Listener: listeners[1], Dialect: schema.OsEvent, MaxLine: schema.MaxEventLine},
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Places: places, Server: unixsock.NewServer(config), log: log, cancel: cancel, served: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.served <- r.Serve(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

// echo answers each line with itself.
func echo(_ context.Context, conn *unixsock.Conn, _ access.Peer, done func()) {
	defer done()
	for {
		line, err := conn.Next()
		if err == nil {
			_, err = conn.Write(append(line, '\n'))
		}
		if err != nil {
			return
		}
	}
}

// connectTo dials path and goes through the prologue.
func connectTo(t testing.TB, path string) (*net.UnixConn, *unixsock.Conn) {
	t.Helper()
	nc, conn := dialConn(t, path)
	t.Cleanup(func() { nc.Close() })
	must(t, access.ClientPrologue(t.Context(), conn, access.AnswerOpen))
	return nc, conn
}

func TestServerServesBothSockets(t *testing.T) {
	t.Parallel()
	peers := make(chan access.Peer, 2)
	dialects := make(chan schema.Dialect, 2)
	server := start(t, unixsock.ServerConfig{Handler: func(ctx context.Context, conn *unixsock.Conn, peer access.Peer, done func()) {
		defer done()
		peers <- peer
		dialects <- conn.Dialect()
		echo(ctx, conn, peer, done)
	}})
	for path, dialect := range map[string]schema.Dialect{server.KernelSocket: schema.OsMessage, server.EventsSocket: schema.OsEvent} {
		_, conn := connectTo(t, path)
		_, err := conn.Write([]byte("hello\n"))
		must(t, err)
		if line, err := conn.Next(); err != nil || string(line) != "hello" {
			t.Errorf("got %q, %v", line, err)
		}
		if got, want := <-peers, (access.Peer{PID: os.Getpid(), UID: os.Geteuid(), GID: os.Getegid()}); got != want {
			t.Errorf("peer is %+v, want %+v", got, want)
		}
		if got := <-dialects; got != dialect {
			t.Errorf("%s speaks %v", path, got)
		}
	}
}

// A client may send its answer, all its frames and the end of input in one go.
func TestServerLosesNothingBehindTheAnswer(t *testing.T) {
	t.Parallel()
	server := start(t, unixsock.ServerConfig{Handler: echo})
	nc, err := unixsock.Dial(t.Context(), server.KernelSocket)
	must(t, err)
	defer nc.Close()
	lines := strings.Repeat("one\ntwo\nthree\n", 100)
	_, err = nc.Write([]byte(pingMessage + "\n" + replyMessage + "\n" + lines + "last"))
	must(t, err)
	must(t, nc.CloseWrite())
	got, err := io.ReadAll(nc)
	must(t, err)
	said := strings.SplitN(string(got), "\n", 3)
	if !strings.Contains(said[0], "Syscall.Authenticate") || !strings.Contains(said[1], `"code":401`) {
		t.Errorf("it began with %q", said[:2])
	}
	if want := lines + "last\n"; said[2] != want {
		t.Errorf("what came back is %q", said[2])
	}
}

func TestServerRefusesAnotherUser(t *testing.T) {
	t.Parallel()
	server := start(t, unixsock.ServerConfig{
		Handler: echo,
		Identify: func(net.Conn) (access.Peer, error) {
			peer := access.Peer{PID: 7, UID: 12345}
			return peer, fault.AuthPeer.New("process %d is another user's", peer.PID)
		},
	})
	nc, err := unixsock.Dial(t.Context(), server.KernelSocket)
	must(t, err)
	defer nc.Close()
	if got, err := io.ReadAll(nc); err != nil || len(got) != 0 {
		t.Errorf("it was told %q, %v", got, err)
	}
	if text := server.log.String(); !strings.Contains(text, "uid=12345") {
		t.Errorf("the log says %q", text)
	}
}

// A thousand connections that never authenticate: another process is served, and no more than the gate holds are kept.
func TestServerBesideSilentConnections(t *testing.T) {
	const role = "UNIXSOCK_TEST_CLIENT_OF"
	if path := os.Getenv(role); path != "" {
		hello(t, path)
		return
	}
	t.Parallel()
	server := start(t, unixsock.ServerConfig{Handler: echo})
	var silent []net.Conn
	for range 1000 {
		nc, err := unixsock.Dial(t.Context(), server.KernelSocket)
		must(t, err)
		defer nc.Close()
		silent = append(silent, nc)
	}
	for _, path := range []string{server.EventsSocket, server.KernelSocket} {
		client := exec.Command(os.Args[0], "-test.run=^TestServerBesideSilentConnections$")
		client.Env = append(os.Environ(), role+"="+path, "GORACE=atexit_sleep_ms=0")
		if out, err := client.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	// The evicted ones have got their error.
	got, err := io.ReadAll(silent[0])
	must(t, err)
	if _, last, _ := strings.Cut(string(got), "\n"); !strings.Contains(last, `"code":503`) {
		t.Errorf("the first silent one was told %q", got)
	}
}

// hello says hello to the echo at path.
func hello(t *testing.T, path string) {
	t.Helper()
	_, conn := connectTo(t, path)
	_, err := conn.Write([]byte("hello\n"))
	must(t, err)
	if line, err := conn.Next(); err != nil || string(line) != "hello" {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestServerOutlivesAPanic(t *testing.T) {
	t.Parallel()
	server := start(t, unixsock.ServerConfig{Handler: func(ctx context.Context, conn *unixsock.Conn, peer access.Peer, done func()) {
		defer done()
		line, err := conn.Next()
		if err == nil && string(line) == "panic" {
			panic("boom")
		}
		_, _ = conn.Write([]byte("fine\n"))
	}})
	_, other := connectTo(t, server.KernelSocket)
	nc, conn := connectTo(t, server.KernelSocket)
	_, err := conn.Write([]byte("panic\n"))
	must(t, err)
	if got, err := io.ReadAll(nc); err != nil || len(got) != 0 {
		t.Errorf("the one that panicked was told %q, %v", got, err)
	}
	_, err = other.Write([]byte("\nhello\n"))
	must(t, err)
	if line, err := other.Next(); err != nil || string(line) != "fine" {
		t.Errorf("the other got %q, %v", line, err)
	}
	must(t, other.Close())
	must(t, server.Shutdown(t.Context())) // which waits for what is logged
	if text := server.log.String(); !strings.Contains(text, "boom") || !strings.Contains(text, "server_test.go") {
		t.Errorf("the log has no stack: %q", text)
	}
}

type brokenAuthenticator struct{}

func (brokenAuthenticator) Offer(context.Context, access.Peer, string) (access.Offer, error) {
	return access.Offer{}, errors.New("no host key")
}

func TestServerWhoseAuthenticatorFails(t *testing.T) {
	t.Parallel()
	server := start(t, unixsock.ServerConfig{Handler: echo, Authenticator: brokenAuthenticator{}})
	nc, err := unixsock.Dial(t.Context(), server.KernelSocket)
	must(t, err)
	defer nc.Close()
	if got, err := io.ReadAll(nc); err != nil || len(got) != 0 {
		t.Errorf("it was told %q, %v", got, err)
	}
	must(t, server.Shutdown(t.Context()))
	if text := server.log.String(); !strings.Contains(text, "no host key") {
		t.Errorf("the log says %q", text)
	}
}

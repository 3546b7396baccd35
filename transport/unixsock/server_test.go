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
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Frames of a client: its answer to the prologue, and a query.
const (
	meta         = `,"metadata":{"id":"r1","timestamp":1,"correlation":"c1"}}`
	replyMessage = `{"kind":"reply","type":"Syscall.Authenticate","data":{}` + meta
	pingMessage  = `{"kind":"query","type":"Syscall.Ping","data":{"payload":1}` + meta
)

// dialConn connects to path in the canonical dialect.
func dialConn(t testing.TB, path string) (*net.UnixConn, *unixsock.Conn) {
	t.Helper()
	nc, err := unixsock.Dial(t.Context(), path)
	must(t, err)
	conn, err := unixsock.NewConn(nc, schema.OsMessage, schema.MaxLine)
	must(t, err)
	return nc, conn
}

// running is a server on both sockets of a runtime directory.
type running struct {
	unixsock.Places
	*unixsock.Server
	log    *testkit.Buffer
	cancel context.CancelFunc
	served chan error
}

// start starts a server, whose context ends after the test.
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

// echo is a Handler that returns each line.
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

// connectTo connects to path and completes the prologue.
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

// TestServerLosesNothingAfterTheAnswer: a client may send its answer, all its frames and the end of input at once.
func TestServerLosesNothingAfterTheAnswer(t *testing.T) {
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
		t.Errorf("the first frames are %q", said[:2])
	}
	if want := lines + "last\n"; said[2] != want {
		t.Errorf("the answer is %q", said[2])
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
		t.Errorf("the client read %q, %v", got, err)
	}
	if text := server.log.String(); !strings.Contains(text, "uid=12345") {
		t.Errorf("the log says %q", text)
	}
}

// TestServerBesideSilentConnections: beside a thousand connections that never authenticate, another process is served;
// only as many as the gate admits stay open.
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
	// Evicted connections got an error.
	got, err := io.ReadAll(silent[0])
	must(t, err)
	if _, last, _ := strings.Cut(string(got), "\n"); !strings.Contains(last, `"code":503`) {
		t.Errorf("the first silent one read %q", got)
	}
}

// hello makes an exchange with the echo at path.
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
		t.Errorf("the one that panicked read %q, %v", got, err)
	}
	_, err = other.Write([]byte("\nhello\n"))
	must(t, err)
	if line, err := other.Next(); err != nil || string(line) != "fine" {
		t.Errorf("the other got %q, %v", line, err)
	}
	must(t, other.Close())
	must(t, server.Shutdown(t.Context())) // after it, the log is complete
	if text := server.log.String(); !strings.Contains(text, "boom") || !strings.Contains(text, "server_test.go") {
		t.Errorf("the log has no stack: %q", text)
	}
}

type brokenAuthenticator struct{}

func (brokenAuthenticator) Offer(context.Context, access.Peer, access.Channel) (access.Offer, error) {
	return access.Offer{}, errors.New("no host key")
}

func TestServerWhoseAuthenticatorFails(t *testing.T) {
	t.Parallel()
	server := start(t, unixsock.ServerConfig{Handler: echo, Authenticator: brokenAuthenticator{}})
	nc, err := unixsock.Dial(t.Context(), server.KernelSocket)
	must(t, err)
	defer nc.Close()
	if got, err := io.ReadAll(nc); err != nil || len(got) != 0 {
		t.Errorf("the client got %q, %v", got, err)
	}
	must(t, server.Shutdown(t.Context()))
	if text := server.log.String(); !strings.Contains(text, "no host key") {
		t.Errorf("the log says %q", text)
	}
}

// holder refuses every answer after a delay of an hour; it reports the beginning and the end of the delay.
type holder chan string

func (h holder) Offer(context.Context, access.Peer, access.Channel) (access.Offer, error) {
	return access.Offer{
		Data:   []byte(`{}`),
		Verify: func([]byte) (access.Identity, error) { return access.Identity{}, fault.AuthSignature.New("wrong") },
		Hold: func() (time.Duration, func()) {
			h <- "held"
			return time.Hour, func() { h <- "freed" }
		},
	}, nil
}

// TestShutdownEndsAHold: Shutdown does not wait for delayed answers.
func TestShutdownEndsAHold(t *testing.T) {
	t.Parallel()
	k := make(holder, 2)
	server := start(t, unixsock.ServerConfig{Handler: echo, Authenticator: k})
	nc, conn := dialConn(t, server.KernelSocket)
	defer nc.Close()
	must(t, access.ClientPrologue(t.Context(), conn, func([]byte, time.Time) ([]byte, error) { return []byte(`"bad"`), nil }))
	if got := testkit.Receive(t, k, "a hold"); got != "held" {
		t.Errorf("got %q at first", got)
	}
	must(t, server.Shutdown(t.Context()))
	line, err := conn.Next()
	if err != nil || !strings.Contains(string(line), `"code":401`) {
		t.Errorf("the client read %q, %v", line, err)
	}
	if got := testkit.Receive(t, k, "the hold's end"); got != "freed" {
		t.Errorf("got %q at the end", got)
	}
}

// TestOfferKnowsTheSocket: the Authenticator gets the name of the connection's socket.
func TestOfferKnowsTheSocket(t *testing.T) {
	t.Parallel()
	places, lock := locked(t)
	listeners, err := unixsock.Listen(t.Context(), lock, places.KernelSocket)
	must(t, err)
	names := make(chan string, 1)
	server := unixsock.NewServer(unixsock.ServerConfig{
		Endpoints:     []unixsock.Endpoint{{Listener: listeners[0], MaxLine: schema.MaxLine, Socket: "the/name"}},
		Handler:       echo,
		Authenticator: nameTaker(names),
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background()) }()
	nc, err := unixsock.Dial(t.Context(), places.KernelSocket)
	must(t, err)
	if got := <-names; got != "the/name" {
		t.Errorf("the socket is %q", got)
	}
	must(t, nc.Close())
	must(t, server.Shutdown(t.Context()))
	must(t, <-served)
}

type nameTaker chan string

func (n nameTaker) Offer(_ context.Context, _ access.Peer, channel access.Channel) (access.Offer, error) {
	n <- channel.(access.Local).Socket
	return access.OpenMode{}.Offer(context.Background(), access.Peer{}, channel)
}

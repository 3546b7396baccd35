package unixsock_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// TestShutdownLetsHandlersFinish: at the shutdown a handler's context ends, and what it writes then arrives.
func TestShutdownLetsHandlersFinish(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	server := start(t, unixsock.ServerConfig{Handler: func(ctx context.Context, conn *unixsock.Conn, _ access.Peer, done func()) {
		defer done()
		close(begun)
		<-ctx.Done()
		_, _ = conn.Write([]byte("goodbye\n"))
	}})
	nc, _ := connectTo(t, server.KernelSocket)
	<-begun
	silent, err := unixsock.Dial(t.Context(), server.EventsSocket)
	must(t, err)
	defer silent.Close()
	must(t, readLine(silent))

	must(t, server.Shutdown(t.Context()))
	must(t, <-server.served)
	if got, err := io.ReadAll(nc); err != nil || string(got) != "goodbye\n" {
		t.Errorf("the client got %q, %v", got, err)
	}
	if got, err := io.ReadAll(silent); err != nil || !strings.Contains(string(got), "UNAVAILABLE") {
		t.Errorf("the connection that never authenticated read %q, %v", got, err)
	}
	if got := dirNames(t, server.Dir); got != "kernel.lock" {
		t.Errorf("files left: %s", got)
	}
	if _, err := unixsock.Dial(t.Context(), server.KernelSocket); !errors.Is(err, unixsock.ErrNoSocket) {
		t.Errorf("dial after the end: %v", err)
	}
	must(t, server.Shutdown(t.Context())) // a second call succeeds
}

// readLine reads one line, a byte at a time.
func readLine(conn net.Conn) error {
	for b := []byte{0}; b[0] != '\n'; {
		if _, err := conn.Read(b); err != nil {
			return err
		}
	}
	return nil
}

// TestShutdownTimeout: when the time is over, the connection of a handler that ignores its context is closed.
func TestShutdownTimeout(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, *running){
		"the time is over": func(t *testing.T, server *running) {
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if err := server.Shutdown(over); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the context's error", err)
			}
		},
		"the server's context ends": func(_ *testing.T, server *running) { server.cancel() },
		"in the middle of a shutdown": func(t *testing.T, server *running) {
			patient := make(chan error)
			go func() { patient <- server.Shutdown(t.Context()) }()
			server.cancel()
			must(t, <-patient)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := make(chan struct{})
			server := start(t, unixsock.ServerConfig{Handler: func(ctx context.Context, conn *unixsock.Conn, _ access.Peer, done func()) {
				defer done()
				close(begun)
				for {
					if _, err := conn.Next(); err != nil {
						return
					}
				}
			}})
			nc, _ := connectTo(t, server.KernelSocket)
			<-begun
			stop(t, server)
			must(t, <-server.served)
			if got, err := io.ReadAll(nc); err != nil || len(got) != 0 {
				t.Errorf("the client got %q, %v", got, err)
			}
		})
	}
}

// fakeListener is a listener whose Accept returns err.
type fakeListener struct {
	net.Listener
	err      error
	attempts atomic.Int32
	closed   chan struct{}
	close    func()
}

func newFakeListener(err error) *fakeListener {
	l := &fakeListener{err: err, closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

func (l *fakeListener) Accept() (net.Conn, error) {
	l.attempts.Add(1)
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
		return nil, l.err
	}
}

func (l *fakeListener) Close() error {
	l.close()
	return nil
}

// TestAcceptDoesNotSpin: without free descriptors the server tries four times a second, so that the operator is
// admitted within a second.
func TestAcceptDoesNotSpin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		listener := newFakeListener(syscall.EMFILE)
		server := unixsock.NewServer(unixsock.ServerConfig{Endpoints: []unixsock.Endpoint{{Listener: listener}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // fake time
		defer cancel()
		must(t, server.Serve(ctx))
		if got := listener.attempts.Load(); got < 240 || got > 250 {
			t.Errorf("%d attempts in a minute", got)
		}
	})
}

// TestServerWithoutAListener: a listener that other code closes ends the server.
func TestServerWithoutAListener(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken, other := newFakeListener(nil), newFakeListener(syscall.EMFILE)
		must(t, broken.Close())
		server := unixsock.NewServer(unixsock.ServerConfig{Endpoints: []unixsock.Endpoint{{Listener: other}, {Listener: broken}}})
		if err := server.Serve(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want net.ErrClosed", err)
		}
	})
}

// TestConnectionAfterTheEnd: a connection that is accepted after the shutdown is closed.
func TestConnectionAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handling := newFakeListener(syscall.EMFILE)
		server := unixsock.NewServer(unixsock.ServerConfig{Endpoints: []unixsock.Endpoint{{Listener: handling}}})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		must(t, server.Serve(ctx))
		near, far := net.Pipe()
		server.Remember(near)
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want EOF", err)
		}
	})
}

package unixsock_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// pipe is a link over a net.Pipe, whose deadlines follow fake time.
type pipe struct {
	net.Conn
	*schema.LineReader
}

func (pipe) Dialect() schema.Dialect { return schema.OsEvent }
func (pipe) LineLimit() int          { return schema.MaxLine }

// receive leads one end of a pipe through the gate and the prologue of server; client gets the other end. It returns how
// long that took.
func receive(t *testing.T, server *unixsock.Server, client func(net.Conn)) (took time.Duration, err error) {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		client(far)
	}()
	start := time.Now()
	_, err = server.Receive(t.Context(), pipe{near, schema.NewLineReader(near, schema.MaxLine)})
	took = time.Since(start)
	near.Close()
	<-ended
	far.Close()
	return took, err
}

// Slow clients have ten seconds in all, however busy they keep the line.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	clients := map[string]func(net.Conn){
		"silent": func(conn net.Conn) {
			_, _ = io.Copy(io.Discard, conn)
		},
		"a byte a second": func(conn net.Conn) {
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			for _, c := range []byte(replyMessage) {
				time.Sleep(time.Second) // fake time
				if _, err := conn.Write([]byte{c}); err != nil {
					return
				}
			}
		},
		"a wrong frame a second": func(conn net.Conn) {
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			for {
				time.Sleep(time.Second) // fake time
				if _, err := conn.Write([]byte(pingMessage + "\n")); err != nil {
					return
				}
			}
		},
		"never reads": func(conn net.Conn) {
			for {
				if _, err := conn.Write([]byte(pingMessage + "\n")); err != nil {
					return
				}
			}
		},
	}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				took, err := receive(t, unixsock.NewServer(unixsock.ServerConfig{}), client)
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("got %v, want the deadline", err)
				}
				if took != unixsock.AuthTimeout {
					t.Errorf("it was let go after %v, want %v", took, unixsock.AuthTimeout)
				}
			})
		})
	}
}

func TestClientInItsLastSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := receive(t, unixsock.NewServer(unixsock.ServerConfig{}), func(conn net.Conn) {
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				time.Sleep(unixsock.AuthTimeout - time.Nanosecond) // fake time
				_, _ = conn.Write([]byte(replyEvent + "\n"))
			}()
			_, _ = io.Copy(io.Discard, conn)
			<-answered
		})
		must(t, err)
	})
}

// Who is sent away is told so in the socket's dialect, unless it is not listening.
func TestSentAwayClientIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := unixsock.NewServer(unixsock.ServerConfig{})
		var heard strings.Builder
		_, err := receive(t, server, func(conn net.Conn) {
			go func() {
				time.Sleep(time.Second) // fake time
				server.Gate().Close()
			}()
			_, _ = io.Copy(&heard, conn)
		})
		if !errors.Is(err, unixsock.ErrClosing) {
			t.Errorf("got %v, want ErrClosing", err)
		}
		if !strings.Contains(heard.String(), "UNAVAILABLE") || !strings.Contains(heard.String(), "shutting down") {
			t.Errorf("it heard %s", heard.String())
		}
	})
}

// slowVerifier is a daemon's check of a signature that takes its time.
type slowVerifier func()

func (v slowVerifier) Offer(context.Context, unixsock.Peer, string) (unixsock.Offer, error) {
	return unixsock.Offer{Data: []byte(`{}`), Verify: func([]byte) (unixsock.Identity, error) {
		v()
		return unixsock.Identity{}, nil
	}}, nil
}

// A connection that loses its place after it has answered is let in all the same.
func TestEvictedTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var server *unixsock.Server
		var crowd []*clock
		server = unixsock.NewServer(unixsock.ServerConfig{Authenticator: slowVerifier(func() {
			crowd = silence(t, server.Gate(), unixsock.AuthWaiting, 1)
		})})
		_, err := receive(t, server, func(conn net.Conn) {
			must(t, readLine(conn))
			_, err := conn.Write([]byte(replyMessage + "\n"))
			must(t, err)
		})
		must(t, err)
		if n := interrupted(crowd); n != 0 || server.Gate().Waiting() != unixsock.AuthWaiting {
			t.Errorf("%d others were evicted, %d wait", n, server.Gate().Waiting())
		}
	})
}

// A line that was cut short is not followed by another: the client could not tell them apart.
func TestSentAwayInTheMiddleOfALine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := unixsock.NewServer(unixsock.ServerConfig{})
		_, err := receive(t, server, func(conn net.Conn) {
			must(t, readLine(conn))
			_, err := conn.Write([]byte(pingMessage + "\n"))
			must(t, err)
			_, err = io.ReadFull(conn, make([]byte, 10))
			must(t, err)
			server.Gate().Close()
			synctest.Wait() // for the write to give up
			if rest, err := io.ReadAll(conn); err != nil || len(rest) != 0 {
				t.Errorf("the cut line was followed by %q, %v", rest, err)
			}
		})
		if !errors.Is(err, unixsock.ErrClosing) {
			t.Errorf("got %v, want ErrClosing", err)
		}
	})
}

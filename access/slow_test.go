package access_test

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

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// pipe is a link over a net.Pipe, whose deadlines follow fake time.
type pipe struct {
	net.Conn
	*schema.LineReader
}

func newPipe(conn net.Conn) pipe { return pipe{conn, schema.NewLineReader(conn, schema.MaxLine)} }

func newDoor(auth access.Authenticator) *access.Door { return access.NewDoor(auth, access.Prologues) }

func (pipe) Dialect() schema.Dialect { return schema.OsEvent }
func (pipe) LineLimit() int          { return schema.MaxLine }

// receive passes one end of a pipe through the prologue of door; client gets the other end. It
// returns how long that took.
func receive(t *testing.T, door *access.Door, client func(net.Conn)) (took time.Duration, err error) {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		client(far)
	}()
	start := time.Now()
	_, err = door.Admit(t.Context(), newPipe(near), nil, access.Peer{PID: 1}, access.Local{})
	took = time.Since(start)
	near.Close()
	<-ended
	far.Close()
	return took, err
}

// TestSlowClients: AuthTimeout bounds the whole prologue, however often the client sends a byte.
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
				took, err := receive(t, newDoor(nil), client)
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("got %v, want the deadline", err)
				}
				if took != access.AuthTimeout {
					t.Errorf("the prologue ended after %v, want %v", took, access.AuthTimeout)
				}
			})
		})
	}
}

func TestClientInItsLastSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := receive(t, newDoor(nil), func(conn net.Conn) {
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				time.Sleep(access.AuthTimeout - time.Nanosecond) // fake time
				_, _ = conn.Write([]byte(replyEvent + "\n"))
			}()
			_, _ = io.Copy(io.Discard, conn)
			<-answered
		})
		testkit.Must(t, err)
	})
}

// TestSentAwayClientIsTold: a client that is refused gets an error in the socket's dialect, unless
// it does not read.
func TestSentAwayClientIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(nil)
		var heard strings.Builder
		_, err := receive(t, door, func(conn net.Conn) {
			go func() {
				time.Sleep(time.Second) // fake time
				door.Gate().Close()
			}()
			_, _ = io.Copy(&heard, conn)
		})
		if !errors.Is(err, access.ErrClosing) {
			t.Errorf("got %v, want ErrClosing", err)
		}
		if !strings.Contains(heard.String(), "UNAVAILABLE") || !strings.Contains(heard.String(), "shutting down") {
			t.Errorf("the client received %s", heard.String())
		}
	})
}

// slowVerifier is an authenticator whose Verify takes time.
type slowVerifier func()

func (v slowVerifier) Offer(context.Context, access.Peer, access.Channel) (access.Offer, error) {
	return access.Offer{Data: []byte(`{}`), Verify: func([]byte) (access.Identity, error) {
		v()
		return access.Identity{}, nil
	}}, nil
}

// TestEvictedTooLate: a connection that is evicted after it has answered is admitted.
func TestEvictedTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var door *access.Door
		var crowd []*clock
		door = newDoor(slowVerifier(func() {
			crowd = silence(t, door.Gate(), access.AuthWaiting, 1)
		}))
		_, err := receive(t, door, func(conn net.Conn) {
			testkit.Must(t, readLine(conn))
			_, err := conn.Write([]byte(replyMessage + "\n"))
			testkit.Must(t, err)
		})
		testkit.Must(t, err)
		if n := interrupted(crowd); n != 0 || door.Gate().Waiting() != access.AuthWaiting {
			t.Errorf("%d others were evicted, %d wait", n, door.Gate().Waiting())
		}
	})
}

// TestSentAwayInTheMiddleOfALine: no line follows one that was cut: the client could not tell them
// apart.
func TestSentAwayInTheMiddleOfALine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(nil)
		_, err := receive(t, door, func(conn net.Conn) {
			testkit.Must(t, readLine(conn))
			_, err := conn.Write([]byte(pingMessage + "\n"))
			testkit.Must(t, err)
			_, err = io.ReadFull(conn, make([]byte, 10))
			testkit.Must(t, err)
			door.Gate().Close()
			synctest.Wait() // for the write to give up
			if rest, err := io.ReadAll(conn); err != nil || len(rest) != 0 {
				t.Errorf("the cut line was followed by %q, %v", rest, err)
			}
		})
		if !errors.Is(err, access.ErrClosing) {
			t.Errorf("got %v, want ErrClosing", err)
		}
	})
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

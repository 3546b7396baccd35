package tlssock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/poll"
	"github.com/promptware-os/pwos/transport/tlssock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kernel is a server whose clients get their lines back.
type kernel struct {
	*tlssock.Server
	name   string // tls://…
	host   access.PublicKey
	dir    string // of the keys "host" and "me", and of known_kernels
	served chan error
	lines  chan string // that arrived
}

// authenticator admits one key.
type authenticator struct {
	verifier access.Verifier
	agent    int64 // that the key belongs to
}

// Offer implements access.Authenticator.
func (a *authenticator) Offer(ctx context.Context, _ access.Peer, channel access.Channel) (access.Offer, error) {
	c, err := a.verifier.Challenge(ctx, channel)
	if err != nil {
		return access.Offer{}, err
	}
	return access.Offer{Data: c.Data(), Issued: c.Issued(), Done: c.Cancel, Verify: func(answer []byte) (access.Identity, error) {
		key, err := c.Verify(answer)
		return access.Identity{Key: key, Agent: a.agent}, err
	}}, nil
}

// start starts a server that change has configured, until the test ends.
func start(t *testing.T, agent int64, change func(*tlssock.ServerConfig)) *kernel {
	t.Helper()
	k := &kernel{dir: t.TempDir(), served: make(chan error, 1), lines: make(chan string, 1000)}
	host := testkit.Value(access.MakeHostKey(filepath.Join(k.dir, "host")))(t)
	me := testkit.Value(access.MakeHostKey(filepath.Join(k.dir, "me")))(t)
	listener := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	k.name, k.host = "tls://"+listener.Addr().String(), host.Key()
	config := tlssock.ServerConfig{
		Listener: listener, Key: host, MaxLine: schema.MaxEventLine, Log: slog.New(slog.DiscardHandler), Handler: k.echo,
		Count: func(int64) (func(), *fault.Fault) { return func() {}, nil },
		Authenticator: &authenticator{agent: agent, verifier: access.Verifier{
			Host: testkit.Value(host.Signer())(t), Now: time.Now,
			Keys: func() (*access.AuthorizedKeys, error) {
				return access.ParseAuthorizedKeys([]byte(me.Public()), time.UTC), nil
			},
		}},
	}
	if change != nil {
		change(&config)
	}
	k.Server = testkit.Value(tlssock.NewServer(config))(t)
	go func() { k.served <- k.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		testkit.Must(t, k.Shutdown(ctx))
		testkit.Must(t, testkit.Receive(t, k.served, "the server's end"))
	})
	return k
}

// echo serves a connection as the kernel's loop does, on one goroutine: it returns each line.
func (k *kernel) echo(ctx context.Context, link *tlssock.Link, _ access.Peer, done func()) {
	defer done()
	events := make(chan poll.Event, 1000)
	defer context.AfterFunc(ctx, link.Drain)()
	if link.Open(nil, func(e poll.Event) { events <- e }) != nil {
		return
	}
	var out []byte
	for full, filled, ended := false, false, false; ; {
		for !ended {
			line, ok, err := link.Next()
			if !ok {
				break
			}
			switch {
			case errors.Is(err, schema.ErrLineTooLong):
				out = append(out, "too long\n"...)
			case err != nil:
				ended = true
			default:
				k.lines <- string(line)
				out = append(append(out, line...), '\n')
			}
		}
		for len(out) > 0 && !full {
			n, err := link.Write(out)
			if err != nil {
				return
			}
			out, full = out[n:], n < len(out)
		}
		switch {
		case ended && len(out) == 0:
			return
		case !ended && !filled:
			filled = !link.Fill()
		default:
			if (<-events)&(poll.Out|poll.Hup) != 0 {
				full = false
			}
			filled = false
		}
	}
}

// session is a client's end that has logged in.
type session struct {
	*tls.Conn
	lines *schema.LineReader
}

// Next, Dialect and LineLimit implement access.Lines.
func (s session) Next() ([]byte, error) { return s.lines.Next() }
func (session) Dialect() schema.Dialect { return schema.OsMessage }
func (session) LineLimit() int          { return schema.MaxEventLine }

// dial returns a session, before the prologue.
func (k *kernel) dial(t *testing.T) (session, access.TLS) {
	t.Helper()
	conn, channel, err := tlssock.Dial(testkit.Context(t), k.name)
	testkit.Must(t, err)
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	t.Cleanup(func() { _ = conn.Close() }) // perhaps a second time
	return session{conn, schema.NewLineReader(conn, schema.MaxEventLine)}, channel
}

// answer logs in on a session as the holder of a key of k.dir does, to which the session looks like channel.
func (k *kernel) answer(t *testing.T, s session, channel access.TLS, key string) error {
	t.Helper()
	login := access.Login{
		Channel: channel, Now: time.Now, Known: access.KnownKernels{Path: filepath.Join(k.dir, "known_kernels")},
		Identities: &access.Identities{Identity: filepath.Join(k.dir, key)},
	}
	return access.ClientPrologue(testkit.Context(t), s, func(offer []byte, issued time.Time) ([]byte, error) {
		answer, err := login.Answer(testkit.Context(t), offer, issued)
		if err != nil {
			return nil, err
		}
		return answer.Data, nil
	})
}

// login returns a session that has logged in.
func (k *kernel) login(t *testing.T) session {
	t.Helper()
	s, channel := k.dial(t)
	testkit.Must(t, k.answer(t, s, channel, "me"))
	return s
}

// works fails unless a client can log in and gets its line back.
func (k *kernel) works(t *testing.T) {
	t.Helper()
	s := k.login(t)
	s.asks(t, "hello")
	testkit.Must(t, s.Close())
}

// asks sends a line and waits until it is back.
func (s session) asks(t *testing.T, line string) {
	t.Helper()
	testkit.Value(io.WriteString(s, line+"\n"))(t)
	if got := testkit.Value(s.Next())(t); string(got) != line {
		t.Errorf("the answer to %.50q is %.50q", line, got)
	}
}

package tlssock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/poll"
	"github.com/promptware-os/pwos/transport/tlssock"
)

// TestSession: lines of a client that has logged in come back, as long as a line may be, and those before its half-close
// are answered.
func TestSession(t *testing.T) {
	t.Parallel()
	k := start(t, 0, nil)
	s := k.login(t)
	s.asks(t, "hello")
	s.asks(t, strings.Repeat("x", schema.MaxEventLine))
	for range 100 {
		testkit.Value(io.WriteString(s, strings.Repeat("y", 5000)+"\n"))(t)
	}
	testkit.Value(io.WriteString(s, "last, without a line end"))(t)
	testkit.Must(t, s.CloseWrite())
	var last string
	count := 0
	for {
		line, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		last = string(testkit.Value(line, err)(t))
		count++
	}
	if count != 101 || last != "last, without a line end" {
		t.Errorf("%d answers, the last one %.50q", count, last)
	}
}

// TestStranger: a client whose key is not authorized is told so, and its session ends.
func TestStranger(t *testing.T) {
	t.Parallel()
	k := start(t, 0, nil)
	testkit.Value(access.MakeHostKey(filepath.Join(k.dir, "stranger")))(t)
	s, channel := k.dial(t)
	testkit.Must(t, k.answer(t, s, channel, "stranger"))
	if line := testkit.Value(s.Next())(t); !strings.Contains(string(line), `"code":401`) {
		t.Errorf("got %s", line)
	}
	if _, err := s.Next(); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after that the client reads %v", err)
	}
	k.works(t)
}

// relay is a program between a client and the kernel, with a session with each.
func (k *kernel) relay(t *testing.T, shown *access.HostKey) (name string) {
	t.Helper()
	listener := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	certificate := testkit.Value(shown.Certificate("relay"))(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stream, err := listener.Accept()
		if err != nil {
			return
		}
		from := tls.Server(stream, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}})
		defer from.Close()
		to, _, err := tlssock.Dial(context.Background(), k.name)
		if err != nil {
			return
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.Copy(from, to) // until an end closes
			_ = from.Close()
		}()
		_, _ = io.Copy(to, from)
		_ = to.Close()
		<-done
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return "tls://" + listener.Addr().String()
}

// TestRelay: a login that a program passes on is refused by the client, and by the kernel if the client does not look.
func TestRelay(t *testing.T) {
	t.Parallel()
	k := start(t, 0, nil)
	between := *k
	own := testkit.Value(access.MakeHostKey(filepath.Join(k.dir, "relay")))(t)

	between.name = k.relay(t, own)
	s, channel := between.dial(t)
	if err := k.answer(t, s, channel, "me"); !errors.Is(err, fault.AuthHost) {
		t.Errorf("the client of a relay with its own key: %v", err)
	}

	between.name = k.relay(t, own)
	s, channel = between.dial(t)
	channel.Shown = k.host
	if err := k.answer(t, s, channel, "me"); !errors.Is(err, fault.AuthHost) {
		t.Errorf("the client of a relay whose certificate it does not look at: %v", err)
	}

	between.name = k.relay(t, own)
	s, channel = between.dial(t)
	me := testkit.Value(access.ReadHostKey(filepath.Join(k.dir, "me")))(t)
	testkit.Must(t, access.ClientPrologue(testkit.Context(t), s, func(offer []byte, issued time.Time) ([]byte, error) {
		return signBlindly(t, me, offer, issued, channel), nil
	}))
	if line := testkit.Value(s.Next())(t); !strings.Contains(string(line), `"code":401`) {
		t.Errorf("to the client of a relay that checks nothing the kernel says %s", line)
	}
	k.works(t)
}

// signBlindly answers an offer as a client does that checks neither the certificate nor the proof.
func signBlindly(t *testing.T, by *access.HostKey, offer []byte, issued time.Time, channel access.TLS) []byte {
	t.Helper()
	v, failure := schema.TypeOf[map[string]string]().Decode(offer)
	if failure != nil {
		t.Fatal(failure)
	}
	members := *v.(*map[string]string)
	key, _, err := access.ParsePublicKey(members["host_key"])
	testkit.Must(t, err)
	binding := access.Binding{HostKey: key, Channel: channel, Issued: issued}
	copy(binding.Challenge[:], testkit.Value(decodeBase64(members["challenge"]))(t))
	text := testkit.Value(binding.Text(access.Client))(t)
	signature := testkit.Value(testkit.Value(by.Signer())(t).Sign(t.Context(), access.Namespace, text))(t)
	return testkit.Value(schema.Marshal(map[string]string{"public_key": by.Public(), "signature": signature.Armor()}))(t)
}

// TestNoKeys: there is no listener that lets everybody in.
func TestNoKeys(t *testing.T) {
	t.Parallel()
	key := testkit.Value(access.MakeHostKey(filepath.Join(t.TempDir(), "host")))(t)
	if _, err := tlssock.NewServer(tlssock.ServerConfig{Key: key}); err == nil {
		t.Error("a server without an Authenticator is made")
	}
	k := start(t, 0, func(c *tlssock.ServerConfig) { c.Authenticator = access.OpenMode{} })
	s, channel := k.dial(t)
	if err := k.answer(t, s, channel, "me"); !errors.Is(err, fault.AuthDowngraded) {
		t.Errorf("a client of a kernel that asks for no key: %v", err)
	}
	s, _ = k.dial(t)
	testkit.Must(t, access.ClientPrologue(t.Context(), s, access.AnswerOpen))
	if line, err := s.Next(); err == nil {
		t.Errorf("a client without a key gets %s", line)
	}
}

// TestAgentsAreCounted: a connection of an agent is refused if it has too many, and counted no longer after its end.
func TestAgentsAreCounted(t *testing.T) {
	t.Parallel()
	left := make(chan int64, 10)
	count := 0
	k := start(t, 7, func(c *tlssock.ServerConfig) {
		c.Count = func(agent int64) (func(), *fault.Fault) {
			if count++; count > 1 {
				return nil, fault.ConnectionTooMany.New("one is enough")
			}
			return func() { left <- agent }, nil
		}
	})
	s := k.login(t)
	s.asks(t, "hello")
	other := k.login(t)
	if line := testkit.Value(other.Next())(t); !strings.Contains(string(line), "one is enough") {
		t.Errorf("the second gets %s", line)
	}
	testkit.Must(t, s.Close())
	if agent := testkit.Receive(t, left, "the end of the first"); agent != 7 {
		t.Errorf("agent %d has left", agent)
	}
}

// TestShutdown: a shutdown answers the lines that have arrived, and ends sessions in any state.
func TestShutdown(t *testing.T) {
	t.Parallel()
	k := start(t, 0, nil)
	s := k.login(t)
	s.asks(t, "hello")
	silent := testkit.Value(net.Dial("tcp", strings.TrimPrefix(k.name, "tls://")))(t)
	waits, _ := k.dial(t)
	defer silent.Close()
	testkit.Value(io.WriteString(s, "once more\n"))(t)
	testkit.Receive(t, k.lines, "the first line")
	testkit.Receive(t, k.lines, "the second line")
	shut := make(chan error, 1)
	go func() { shut <- k.Shutdown(context.Background()) }()
	if line := testkit.Value(s.Next())(t); string(line) != "once more" {
		t.Errorf("the answer is %q", line)
	}
	if _, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("then it reads %v", err)
	}
	testkit.Must(t, s.Close())
	// The system resets a connection that is closed before all that has arrived was read, such as the end of the handshake.
	if _, err := io.ReadAll(waits); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a session before its login ends with %v", err)
	}
	testkit.Must(t, testkit.Receive(t, shut, "the shutdown"))
}

// TestShutdownInHaste: a handler that does not end, and a peer that reads nothing, hold the shutdown up no longer than its
// time.
func TestShutdownInHaste(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 1)
	k := start(t, 0, func(c *tlssock.ServerConfig) {
		c.Handler = func(ctx context.Context, link *tlssock.Link, _ access.Peer, done func()) {
			testkit.Must(t, link.Open(nil, func(poll.Event) {}))
			for n := 1; n > 0; {
				n, _ = link.Write(make([]byte, 1<<20)) // until the peer accepts no more
			}
			entered <- struct{}{}
			<-ctx.Done()
		}
	})
	k.login(t)
	testkit.Receive(t, entered, "the handler")
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := k.Shutdown(now); !errors.Is(err, context.Canceled) {
		t.Errorf("the shutdown ends with %v", err)
	}
}

// TestPanic: a handler that panics ends its own connection.
func TestPanic(t *testing.T) {
	t.Parallel()
	var log testkit.Buffer
	k := start(t, 0, func(c *tlssock.ServerConfig) {
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.Handler = func(context.Context, *tlssock.Link, access.Peer, func()) { panic("on purpose") }
	})
	s := k.login(t)
	if _, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the client reads %v", err)
	}
	if !strings.Contains(log.String(), "on purpose") {
		t.Errorf("the log is %s", log.String())
	}
}

package kernel_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/access/keyed"
	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/poll"
)

// TestSessionOverAnyStream: identification does not depend on the transport. A key logs in over streams that are not Unix
// sockets, makes a call as its agent, and is answered; another key is refused.
func TestSessionOverAnyStream(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*testing.T) (near, far net.Conn){
		"pipe": func(*testing.T) (near, far net.Conn) { return net.Pipe() },
		"TLS":  overTLS,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := assemble(t)
			door := newKeyDoor(t, p)

			near, far := connect(t)
			served := door.serve(near)
			c := door.login(t, far, "agent")
			a := c.call("Memory.Set", `{"pid":1,"key":"k","value":"v"}`, nil)
			if pid := a.Metadata.Kernel.PID; pid == kernel.Operator {
				t.Error("a login with the agent's key is the operator")
			}
			var got string
			if c.call("Memory.Get", `{"pid":1,"key":"k"}`, &got); got != "v" {
				t.Errorf("the agent reads %q", got)
			}
			c.refused(403, "Syscall.Spawn", `{"child_agent_id":"x"}`)
			testkit.Must(t, far.Close())
			testkit.Must(t, testkit.Receive(t, served, "the session's end"))

			near, far = connect(t)
			served = door.serve(near)
			c = door.login(t, far, "stranger")
			if a := c.next(); a.Kind != "error" || !strings.Contains(string(a.Data), `"code":401`) {
				t.Errorf("a client without an authorized key gets %s", a.Data)
			}
			if _, err := c.lines.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("after that the client reads %v", err)
			}
			testkit.Must(t, far.Close())
			if err := testkit.Receive(t, served, "the refusal"); !errors.As(err, new(*access.Rejection)) {
				t.Errorf("the login ended with %v", err)
			}
		})
	}
}

// overTLS connects over TLS on loopback, with a new certificate.
func overTLS(t *testing.T) (near, far net.Conn) {
	key := testkit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der := testkit.Value(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	roots := x509.NewCertPool()
	roots.AddCert(testkit.Value(x509.ParseCertificate(der))(t))

	listener := testkit.Value(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}))(t)
	defer listener.Close()
	accepted := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			near, err = conn, conn.(*tls.Conn).Handshake()
		}
		accepted <- err
	}()
	far = testkit.Value(tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: roots}))(t)
	testkit.Must(t, testkit.Receive(t, accepted, "the handshake"))
	return near, far
}

// keyDoor is the door of a kernel that admits one key, an agent's.
type keyDoor struct {
	*access.Door
	kernel *actors.Kernel
	dir    string // of the private keys
}

// streamChannel is what both ends bind a login to.
func streamChannel() access.Channel {
	return access.Local{Socket: "/stream", PID: os.Getpid(), UID: os.Getuid()}
}

func newKeyDoor(t *testing.T, p *parts) *keyDoor {
	t.Helper()
	d := &keyDoor{kernel: p.kernel, dir: p.cfg.RuntimeDir}
	keys := make(map[string]*access.HostKey) // created like a kernel's own key
	for _, name := range []string{"host", "agent", "stranger"} {
		keys[name] = testkit.Value(access.MakeHostKey(filepath.Join(d.dir, name)))(t)
	}
	authorized := filepath.Join(d.dir, "authorized_keys")
	testkit.WriteFile(t, authorized, `agent="bot",allow="Memory.*" `+keys["agent"].Public()+"\n")
	mode := testkit.Value(keyed.New(keyed.Options{
		Keys: authorized, Host: testkit.Value(keys["host"].Signer())(t), Kernel: p.kernel,
		Processes: p.processes.Processes(), Tokens: p.tokens, Living: p.processes.Living,
		Origin: "https://test.local/", Note: p.kernel.Note, Log: slog.New(slog.DiscardHandler),
	}))(t)
	d.Door = access.NewDoor(mode, 1)
	t.Cleanup(func() {
		d.Close()
		mode.End()
		testkit.Must(t, mode.Close())
	})
	return d
}

// serve handles an accepted connection as a transport does. It returns a channel with the error that ended the connection.
func (d *keyDoor) serve(conn net.Conn) <-chan error {
	ended := make(chan error, 1)
	go func() {
		s := newStream(conn)
		identity, err := d.Admit(context.Background(), s, nil, access.Peer{PID: os.Getpid(), UID: os.Getuid()}, streamChannel())
		if err == nil && identity.Key == nil {
			err = errors.New("it was let in without a key")
		}
		if err != nil {
			_ = conn.Close() // a refused peer may have disconnected
			ended <- err
			return
		}
		link := &streamLink{stream: s}
		d.kernel.Serve(link, kernel.Caller{PID: identity.Agent, Key: identity.Key.Key.Fingerprint(), Conn: "c-1"}, func() {
			_ = link.Close() // its peer has disconnected
			link.work.Wait()
			ended <- nil
		})
	}()
	return ended
}

// login answers the prologue with a key.
func (d *keyDoor) login(t *testing.T, conn net.Conn, key string) *client {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() }) // a second time
	login := access.Login{
		Channel: streamChannel(), Now: time.Now,
		Known:      access.KnownKernels{Path: filepath.Join(d.dir, "known_kernels")},
		Identities: &access.Identities{Identity: filepath.Join(d.dir, key)},
	}
	testkit.Must(t, access.ClientPrologue(t.Context(), newStream(conn), func(offer []byte, issued time.Time) ([]byte, error) {
		answer, err := login.Answer(t.Context(), offer, issued)
		if err != nil {
			return nil, err
		}
		return answer.Data, nil
	}))
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	return &client{t: t, conn: conn, lines: bufio.NewReader(conn), shapes: make(map[string]*shape)}
}

// stream has the lines of any connection.
type stream struct {
	net.Conn
	*schema.LineReader
}

func newStream(conn net.Conn) stream {
	return stream{conn, schema.NewLineReader(conn, schema.MaxLine)}
}

func (stream) Dialect() schema.Dialect { return schema.OsMessage }
func (stream) LineLimit() int          { return schema.MaxLine }

// streamLink is a stream for the loop: one goroutine reads ahead, and another writes.
type streamLink struct {
	stream
	ready func(poll.Event)
	work  sync.WaitGroup

	mu      sync.Mutex
	in      []byte
	end     error // the error after in
	writing bool
	broken  error
}

var _ actors.Link = (*streamLink)(nil)

func (l *streamLink) Open(_ poll.Poller, ready func(poll.Event)) error {
	l.ready = ready
	l.work.Go(l.read)
	ready(poll.In) // what the prologue has read
	return nil
}

func (l *streamLink) read() {
	p := make([]byte, schema.MaxLine)
	for {
		n, err := l.Conn.Read(p)
		l.mu.Lock()
		l.in, l.end = append(l.in, p[:n]...), err
		l.mu.Unlock()
		l.ready(poll.In)
		if err != nil {
			return
		}
	}
}

// ReadOnce implements schema.Source.
func (l *streamLink) ReadOnce(p []byte) (n int, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n = copy(p, l.in); n == 0 {
		return 0, false, l.end
	}
	l.in = l.in[n:]
	return n, len(l.in) > 0 || l.end != nil, nil
}

func (l *streamLink) Fill() (more bool)                       { return l.LineReader.Fill(l) }
func (l *streamLink) Next() (line []byte, ok bool, err error) { return l.LineReader.TryNext() }

// Write accepts the bytes if no others are being written.
func (l *streamLink) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil || l.writing {
		return 0, l.broken
	}
	l.writing = true
	text := append([]byte(nil), p...)
	l.work.Go(func() {
		_, err := l.Conn.Write(text)
		l.mu.Lock()
		l.writing, l.broken = false, err
		l.mu.Unlock()
		l.ready(poll.Out)
	})
	return len(p), nil
}

func (l *streamLink) Interrupt() {
	_ = l.SetReadDeadline(time.Unix(1, 0)) // ends read, if the peer has not
	l.ready(poll.In | poll.Hup)
}

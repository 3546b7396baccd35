package egress_test

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
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/network"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// pid is the PID of the agent.
const pid = 7

// entry is a journaled call with its outcome.
type entry struct {
	typ  string
	in   any
	data string
	err  *fault.Fault
}

// house is the network of an agent on loopback, with the decisions of the kernel, a journal in memory, and test servers by name.
type house struct {
	t      *testing.T
	token  atomic.Pointer[kernel.Token]
	tick   atomic.Int64
	domain *network.Domain
	server *egress.Server
	stop   func()
	relays *relays

	proxy, dnsTCP string
	dns           string
	upstreams     map[string]string // base URLs of upstreams, by name

	mu      sync.Mutex
	entries []entry
	changed chan struct{}
	hosts   map[string]string // addresses of test servers, by host and port
	dialled []string

	recording chan error // if not nil: before the outcome of a call is recorded, nil is sent, and an error received
}

// Token implements kernel.Tokens.
func (h *house) Token(int64) *kernel.Token { return h.token.Load() }

// grant sets the hosts and syscalls that the agent is granted.
func (h *house) grant(hosts []string, allowed ...string) {
	granted, err := kernel.NewGrant(&schema.GrantInput{PID: pid, AllowedSyscalls: allowed, HTTP: &schema.HTTPGrant{Hosts: hosts}}, kernel.Operator, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.token.Store(&kernel.Token{Granted: schema.Token{PID: pid, TokenGrant: *granted}})
}

// journal decides a call as the kernel does, and records its outcome.
func (h *house) journal(ctx context.Context, pid int64, request schema.Request, run func(context.Context) ([]byte, error)) ([]byte, error) {
	typ := request.Row.Type
	call := &kernel.Call{Request: kernel.Request{Syscall: request.Row, Input: request.Input, Message: schema.Message{Type: typ}}, Decision: kernel.Decision{PID: pid, Token: h.token.Load(), Moment: kernel.Moment{Tick: h.tick.Load()}}}
	_, err := h.domain.Decide(call)
	var data []byte
	if err == nil {
		data, err = run(ctx)
	}
	if h.recording != nil {
		h.recording <- nil
		if lost := <-h.recording; lost != nil {
			return nil, lost
		}
	}
	e := entry{typ: typ, in: request.Input, data: string(data)}
	if err != nil {
		e.err = fault.Of(err)
		err = e.err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entries = append(h.entries, e)
	close(h.changed)
	h.changed = make(chan struct{})
	return data, err
}

// await waits until there are n entries, and returns them.
func (h *house) await(n int) []entry {
	h.t.Helper()
	late := time.After(testkit.Patience)
	for {
		h.mu.Lock()
		list, changed := append([]entry{}, h.entries...), h.changed
		h.mu.Unlock()
		if len(list) >= n {
			return list
		}
		select {
		case <-changed:
		case <-late:
			h.t.Fatalf("%d entries, want %d: %+v", len(list), n, list)
		}
	}
}

func (h *house) dial(ctx context.Context, to fetch.Endpoint) (net.Conn, error) {
	h.mu.Lock()
	h.dialled = append(h.dialled, to.String())
	at := h.hosts[to.String()]
	h.mu.Unlock()
	if at == "" {
		return nil, fault.NetUnreachable.New("%s is not the name of any host", to)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", at)
}

// at sets the address of the test server for a host and port.
func (h *house) at(hostport, address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hosts[hostport] = address
}

func (h *house) dials() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.dialled...)
}

// open returns a house whose agent may connect to allowed.test, and to raw.test on port 7000.
func open(t *testing.T, change ...func(*egress.Config)) *house {
	t.Helper()
	return openWith(t, nil, change...)
}

// openWith is open for an agent with upstreams of its own.
func openWith(t *testing.T, own []*egress.Upstream, change ...func(*egress.Config)) *house {
	t.Helper()
	h := &house{
		t: t, domain: network.New(egress.Admits), changed: make(chan struct{}), hosts: map[string]string{},
		upstreams: map[string]string{}, relays: &relays{conns: make(chan net.Conn), closed: make(chan struct{})},
	}
	h.grant([]string{"allowed.test", "raw.test:7000"})
	c := egress.Config{Tokens: h, Tick: h.tick.Load, Dial: h.dial, Journal: h.journal, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	sockets := egress.Sockets{Proxy: listen(t), DNSTCP: listen(t), Relay: []net.Listener{h.relays}, Upstreams: map[string]net.Listener{}}
	var err error
	sockets.DNS, err = net.ListenPacket("udp", "127.0.0.1:0")
	testkit.Must(t, err)
	for _, u := range append(own, c.Upstreams...) {
		l := listen(t)
		sockets.Upstreams[u.Name], h.upstreams[u.Name] = l, "http://"+l.Addr().String()
	}
	h.proxy, h.dns, h.dnsTCP = sockets.Proxy.Addr().String(), sockets.DNS.LocalAddr().String(), sockets.DNSTCP.Addr().String()
	h.server = egress.New(c)
	h.stop = h.server.Serve(pid, sockets, egress.Own{Upstreams: own})
	t.Cleanup(func() {
		h.stop()
		h.server.Close()
	})
	return h
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// relays is a listener for all addresses of the agent's network.
type relays struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// local is a connection with another local address.
type local struct {
	*net.TCPConn
	addr net.Addr
}

func (l *local) LocalAddr() net.Addr { return l.addr }

func (r *relays) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return c, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

func (r *relays) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}
func (r *relays) Addr() net.Addr { return &net.TCPAddr{} }

// connect returns a connection to an address and port of the agent's network.
func (h *house) connect(addr netip.Addr, port uint16) *net.TCPConn {
	h.t.Helper()
	l := listen(h.t)
	client, err := net.Dial("tcp", l.Addr().String())
	testkit.Must(h.t, err)
	h.t.Cleanup(func() { _ = client.Close() })
	testkit.Must(h.t, client.SetDeadline(time.Now().Add(testkit.Patience)))
	accepted, err := l.Accept()
	testkit.Must(h.t, err)
	h.relays.conns <- &local{accepted.(*net.TCPConn), net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, port))}
	return client.(*net.TCPConn)
}

// to looks up a name in the agent's network, and returns a connection to its address.
func (h *house) to(name string, port uint16) *net.TCPConn {
	h.t.Helper()
	addrs, code := h.lookup(name, dnsmessage.TypeA)
	if len(addrs) != 1 {
		h.t.Fatalf("%s has %v, %v", name, addrs, code)
	}
	return h.connect(addrs[0], port)
}

// lookup queries the name server for a name and type.
func (h *house) lookup(name string, typ dnsmessage.Type) ([]netip.Addr, dnsmessage.RCode) {
	h.t.Helper()
	conn, err := net.Dial("udp", h.dns)
	testkit.Must(h.t, err)
	defer conn.Close()
	testkit.Must(h.t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	_, err = conn.Write(query(h.t, name, typ))
	testkit.Must(h.t, err)
	buf := make([]byte, 1500)
	n, err := conn.Read(buf)
	testkit.Must(h.t, err)
	return answers(h.t, buf[:n], name)
}

func query(t testing.TB, name string, typ dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 77, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name + "."), Type: typ, Class: dnsmessage.ClassINET}},
	}
	raw, err := m.Pack()
	testkit.Must(t, err)
	return raw
}

// answers parses the answer to a query for name, and checks that it is well-formed.
func answers(t testing.TB, raw []byte, name string) (addrs []netip.Addr, code dnsmessage.RCode) {
	t.Helper()
	var m dnsmessage.Message
	testkit.Must(t, m.Unpack(raw))
	if m.ID != 77 || !m.Response || len(m.Questions) != 1 || m.Questions[0].Name.String() != name+"." {
		t.Fatalf("answer %+v does not fit the question %s", m, name)
	}
	for _, r := range m.Answers {
		addrs = append(addrs, netip.AddrFrom4(r.Body.(*dnsmessage.AResource).A))
	}
	return addrs, m.RCode
}

// proxied sends CONNECT to the proxy. It returns the connection after a 200, else the status and the text.
func (h *house) proxied(authority string) (conn *net.TCPConn, r *bufio.Reader, status int, text string) {
	h.t.Helper()
	c := h.dialProxy()
	_, err := io.WriteString(c, "CONNECT "+authority+" HTTP/1.1\r\nHost: "+authority+"\r\n\r\n")
	testkit.Must(h.t, err)
	r = bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	testkit.Must(h.t, err)
	if resp.StatusCode == http.StatusOK {
		return c, r, resp.StatusCode, ""
	}
	body, err := io.ReadAll(resp.Body)
	testkit.Must(h.t, err)
	return nil, nil, resp.StatusCode, strings.TrimSpace(string(body))
}

func (h *house) dialProxy() *net.TCPConn {
	h.t.Helper()
	c, err := net.Dial("tcp", h.proxy)
	testkit.Must(h.t, err)
	h.t.Cleanup(func() { _ = c.Close() })
	testkit.Must(h.t, c.SetDeadline(time.Now().Add(testkit.Patience)))
	return c.(*net.TCPConn)
}

// certificate returns a certificate for names, and a pool that trusts it.
func certificate(t testing.TB, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	testkit.Must(t, err)
	cert, err := x509.ParseCertificate(der)
	testkit.Must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// echo is a server that sends back the bytes that it receives, and counts them. Without TLS it sends END before it closes a connection.
type echo struct {
	net.Listener
	got atomic.Int64
}

func newEcho(t *testing.T, config *tls.Config) *echo {
	t.Helper()
	e := &echo{Listener: listen(t)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			raw, err := e.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer raw.Close()
				stream := net.Conn(&counting{raw, &e.got})
				if config != nil {
					stream = tls.Server(stream, config)
				}
				_, _ = io.Copy(stream, stream)
				if config == nil {
					_, _ = io.WriteString(raw, "END")
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = e.Close()
		all.Wait()
	})
	return e
}

type counting struct {
	net.Conn
	n *atomic.Int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// closed waits for the end of a connection, and returns the bytes before it.
func closed(t *testing.T, c net.Conn) string {
	t.Helper()
	all, err := io.ReadAll(c)
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		t.Fatal("the connection stays open")
	}
	return string(all)
}

package bus_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/big"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/cluster/bus"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
)

// logged is what a node has logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// several are nodes of one bus.
type several struct {
	t     *testing.T
	alpha *access.HostKey
	lines []string // of the members file
	nodes []*bus.Node
	logs  []*logged
	set   []bus.Settings
}

// newSeveral makes the keys of count nodes, and of the kernel alpha.
func newSeveral(t *testing.T, count int) *several {
	t.Helper()
	key, line := testbus.Key(t, testkit.Dir(t), "alpha", "")
	b := &several{t: t, alpha: key, lines: []string{line}}
	for i := range count {
		s := bus.Settings{Listen: "127.0.0.1:0", Peers: "127.0.0.1:0", Name: "n" + string(rune('1'+i)), Dir: testkit.Dir(t), MaxBytes: 1 << 26}
		b.lines = append(b.lines, testkit.Value(bus.NodeLine(s.Dir, s.Name))(t))
		b.set = append(b.set, s)
	}
	return b
}

// start starts the next node, which knows the nodes of these lines, and is told where others listen.
func (b *several) start(lines []string, routes ...string) *bus.Node {
	b.t.Helper()
	i := len(b.nodes)
	s := &b.set[i]
	s.Members, s.Routes = access.ParseMembers([]byte(strings.Join(lines, "\n")), time.UTC), routes
	log := new(logged)
	n, err := bus.Start(*s, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		b.t.Fatalf("%v\n%s", err, log.text.String())
	}
	b.t.Cleanup(n.Close)
	b.nodes, b.logs = append(b.nodes, n), append(b.logs, log)
	return n
}

// agree waits until the bus of a node makes a stream with three replicas.
func (b *several) agree(at *bus.Node) {
	b.t.Helper()
	_, js := dial(b.t, at.URL(), b.alpha)
	testkit.Eventually(b.t, "three nodes have a stream", func() bool {
		return cluster.AskToMake(testkit.Context(b.t), js, "stream", "alpha", 3) == nil
	})
}

// Three nodes whose lines are in the members file of each make one bus. The key of one that a reload removes is of no use any more.
func TestNodesKnowEachOther(t *testing.T) {
	t.Parallel()
	b := newSeveral(t, 3)
	first := b.start(b.lines)
	at := first.PeersAddr().String()
	b.start(b.lines, "nats://"+at)
	third := b.start(b.lines, at, at)
	b.agree(third)
	if b.logs[0].count("IN PRODUCTION") > 0 {
		t.Error("the log warns of certificates, which are not used")
	}
	for i, n := range b.nodes[:2] {
		s := b.set[i]
		s.Members = access.ParseMembers([]byte(strings.Join(b.lines[:3], "\n")), time.UTC)
		testkit.Must(t, n.Reload(s))
	}
	testkit.Eventually(t, "the third node is alone", func() bool { return third.Routes() == 0 })
	testkit.Eventually(t, "it tried again, and was refused", func() bool {
		return b.logs[0].count("no line of the members file names a node with the key SHA256:") > 1
	})
	if third.Routes() != 0 || first.Routes() == 0 {
		t.Errorf("the third node has %d connections to the others, the first %d", third.Routes(), first.Routes())
	}
}

// Nodes that the members file does not name are refused in both directions. They get no message and no stream.
func TestStrangers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own  *tls.Config // of a NATS server, which is configured by hand
		know [2]bool     // of two nodes of pwos-bus: the one knows the key of the other
		nats bool
	}{
		"a NATS server":                             {nats: true},
		"a NATS server with TLS":                    {nats: true, own: certified(t, false)},
		"a NATS server with a certificate, ed25519": {nats: true, own: certified(t, true)},
		"a node that is in no line":                 {know: [2]bool{false, true}},
		"a node to which this one is a stranger":    {know: [2]bool{true, false}},
		"two nodes of different buses":              {},
	} {
		for direction, connects := range map[string]bool{"connects": true, "is connected to": false} {
			t.Run(name+" "+direction, func(t *testing.T) {
				t.Parallel()
				b := newSeveral(t, 2)
				lines := [2][]string{b.lines[:2], {b.lines[0], b.lines[2]}}
				for i, knows := range c.know {
					if knows {
						lines[i] = b.lines
					}
				}
				var node *bus.Node
				var strange func() int
				stranger := func(routes ...string) string {
					if !c.nats {
						n := b.start(lines[len(b.nodes)], routes...)
						strange = n.Routes
						return n.PeersAddr().String()
					}
					s := stock(t, c.own, routes...)
					strange = s.NumRoutes
					return s.ClusterAddr().String()
				}
				if connects || !c.nats {
					node = b.start(lines[0])
				}
				if connects {
					stranger(node.PeersAddr().String())
				} else if c.nats {
					node = b.start(lines[0], stranger())
				} else { // the first is the stranger, and the second connects to it
					node = b.start(lines[1], node.PeersAddr().String())
					strange = b.nodes[0].Routes
				}
				refused := func() (n int) {
					for _, l := range b.logs {
						n += l.count("TLS route handshake error")
					}
					return n
				}
				testkit.Eventually(t, "it is refused again and again", func() bool { return refused() > 2 })
				if node.Routes() != 0 || strange() != 0 {
					t.Errorf("%d connections at the node, %d at the stranger", node.Routes(), strange())
				}
			})
		}
	}
}

// certified returns a configuration with a certificate that the server has signed itself.
func certified(t *testing.T, client bool) *tls.Config {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"pwos-bus"}}
	der := testkit.Value(x509.CreateCertificate(rand.Reader, form, form, public, private))(t)
	c := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}}, InsecureSkipVerify: true}
	if client {
		c.ClientAuth = tls.RequireAnyClientCert
	}
	return c
}

// stock starts a NATS server as anybody may configure one.
func stock(t *testing.T, with *tls.Config, routes ...string) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: -1, ServerName: "stock", NoSigs: true, NoLog: true, JetStream: true, StoreDir: testkit.Dir(t)}
	o.Cluster.Name, o.Cluster.Host, o.Cluster.Port = "pwos", "127.0.0.1", -1
	o.Cluster.TLSConfig, o.Cluster.TLSTimeout = with, 5
	for _, at := range append(routes, "127.0.0.1:1") { // JetStream wants one
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: at})
	}
	s := testkit.Value(server.NewServer(o))(t)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	testkit.Eventually(t, "it listens for nodes", func() bool { return s.ClusterAddr() != nil })
	return s
}

// A node that is not in its own members file does not start: it says which line is missing. Nor does one with the name of another.
func TestOwnLine(t *testing.T) {
	t.Parallel()
	b := newSeveral(t, 2)
	for want, members := range map[string][]string{
		b.lines[1]:                            {b.lines[0], b.lines[2]},
		"the members file names this node n9": {b.lines[0], strings.Replace(b.lines[1], "n1", "n9", 1)},
	} {
		s := b.set[0]
		s.Members = access.ParseMembers([]byte(strings.Join(members, "\n")), time.UTC)
		n, err := bus.Start(s, slog.New(slog.DiscardHandler))
		if err == nil {
			n.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("started: %v, want %q", err, want)
		}
	}
}

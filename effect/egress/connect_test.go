package egress_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestConnect checks which destinations CONNECT accepts, and that a refused host is not dialled and is journaled as one denied entry.
func TestConnect(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.grant([]string{"allowed.test", "raw.test:7000", "*.wild.test", "192.0.2.1"})
	plain := newEcho(t, nil)
	for _, at := range []string{"allowed.test:443", "raw.test:7000", "a.wild.test:443", "192.0.2.1:443"} {
		h.at(at, plain.Addr().String())
	}
	tests := []struct {
		authority string
		status    int
		entry     string // host of the journal entry; "": no entry
	}{
		{"allowed.test:443", 200, "allowed.test"},
		{"ALLOWED.Test:443", 200, "allowed.test"},
		{"raw.test:7000", 200, "raw.test"},
		{"a.wild.test:443", 200, "a.wild.test"},
		{"192.0.2.1:443", 200, "192.0.2.1"},
		{"allowed.test:8443", 403, "allowed.test"},
		{"raw.test:443", 403, "raw.test"},
		{"wild.test:443", 403, "wild.test"},
		{"other.test:443", 403, "other.test"},
		{"other.test:80", 403, "other.test"},
		{"allowed.test.evil.test:443", 403, "allowed.test.evil.test"},
		{"127.0.0.1:443", 403, "127.0.0.1"},
		{"[::1]:443", 403, "::1"},
		{"192.0.2.2:443", 403, "192.0.2.2"},
		{"gone.wild.test:443", 502, "gone.wild.test"},
		{"allowed.test.:443", 400, ""},
		{"allowed.test", 400, ""},
		{"allowed.test:0", 400, ""},
		{"allowed.test:65979", 400, ""},
		{"allowed.test:+443", 400, ""},
		{"user@allowed.test:443", 400, ""},
		{"0x7f.1:443", 400, ""},
		{"2130706433:443", 400, ""},
		{"allowed.test%00:443", 400, ""},
		{"allow\u0435d.test:443", 400, ""},
		{"http://allowed.test/", 400, ""},
	}
	left := 0
	for _, tt := range tests {
		before := len(h.dials())
		conn, _, status, text := h.proxied(tt.authority)
		if status != tt.status {
			t.Errorf("%s: %d %s", tt.authority, status, text)
		}
		if conn != nil {
			_ = conn.Close()
		}
		if dialled := len(h.dials()) - before; dialled > 0 != (status == 200 || status == 502) {
			t.Errorf("%s: dialled %d times", tt.authority, dialled)
		}
		if tt.entry == "" {
			continue
		}
		left++
		list := h.await(left)
		last := list[left-1]
		if last.in.(*schema.NetConnectInput).Host != tt.entry {
			t.Errorf("%s: the entry is %+v", tt.authority, last)
		}
		if status == 403 && (last.err == nil || last.err.Code() != 403 || !strings.Contains(text, "pwos cap grant 7 --add Http.Fetch --host ")) {
			t.Errorf("%s: the entry is %+v, the answer %s", tt.authority, last, text)
		}
	}
	if n := len(h.await(left)); n != left {
		t.Errorf("%d entries, want %d", n, left)
	}
}

// way is a way in which a program connects to a host.
type way struct {
	name string
	to   func(h *house, name string, port string) net.Conn
}

func ways() []way {
	return []way{
		{"proxy", func(h *house, name, port string) net.Conn {
			conn, r, status, text := h.proxied(name + ":" + port)
			if status != 200 {
				h.t.Fatalf("CONNECT %s:%s: %d %s", name, port, status, text)
			}
			if r.Buffered() > 0 {
				return &peeked{conn, r}
			}
			return conn
		}},
		{"relay", func(h *house, name, port string) net.Conn {
			number := map[string]uint16{"443": 443, "80": 80, "7000": 7000}[port]
			return h.to(name, number)
		}},
	}
}

type peeked struct {
	*net.TCPConn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// TestTLSName checks that TLS must have the allowed name as server name, that port 443 allows only TLS, and that a refused connection
// is closed before the host gets a byte.
func TestTLSName(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t, "allowed.test", "other.test", "192.0.2.1")
	tests := []struct {
		name, host, port string
		asks             string // server name; "-": none; "": no TLS
		raw              string
		passes           bool
	}{
		{"the name", "allowed.test", "443", "allowed.test", "", true},
		{"in capitals", "allowed.test", "443", "ALLOWED.test", "", true},
		{"another", "allowed.test", "443", "other.test", "", false},
		{"none", "allowed.test", "443", "-", "", false},
		{"no TLS", "allowed.test", "443", "", "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n", false},
		{"half a record", "allowed.test", "443", "", "\x16\x03\x01\x00\x05hello", false},
		{"another on a granted port", "raw.test", "7000", "allowed.test", "", false},
		{"the name on a granted port", "raw.test", "7000", "raw.test", "", true},
		{"no TLS on a granted port", "raw.test", "7000", "", "SSH-2.0-x\r\n", true},
	}
	for _, w := range ways() {
		for _, tt := range tests {
			t.Run(w.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				h := open(t)
				config := &tls.Config{Certificates: []tls.Certificate{cert}}
				if tt.asks == "" {
					config = nil
				}
				server := newEcho(t, config)
				h.at(tt.host+":"+tt.port, server.Addr().String())
				raw := w.to(h, tt.host, tt.port)
				conn := net.Conn(raw)
				var err error
				if tt.asks != "" {
					conn = tls.Client(raw, clientConfig(pool, tt.asks))
				}
				said := tt.raw
				if said == "" {
					said = "hello"
				}
				_, err = io.WriteString(conn, said)
				if err == nil && tt.passes {
					back := make([]byte, len(said))
					_, err = io.ReadFull(conn, back)
				}
				if tt.passes {
					testkit.Must(t, err)
					_ = raw.Close()
					if e := h.await(1)[0]; e.err != nil || !strings.Contains(e.data, `"host":"`+tt.host+`"`) {
						t.Errorf("entry %+v", e)
					}
					return
				}
				if got := closed(t, raw); strings.Contains(got, said) {
					t.Errorf("the host answered %q", got)
				}
				if n := server.got.Load(); n > 0 {
					t.Errorf("the host was sent %d bytes", n)
				}
				if e := h.await(1)[0]; e.err == nil || e.err.Code() != 403 {
					t.Errorf("entry %+v", e)
				}
			})
		}
	}
}

func clientConfig(pool *x509.CertPool, name string) *tls.Config {
	if name == "-" {
		return &tls.Config{InsecureSkipVerify: true} // sends no server name
	}
	return &tls.Config{RootCAs: pool, ServerName: name, InsecureSkipVerify: true}
}

// TestRelayOfNothing checks that an address without a name is not connected, and a name only on allowed ports.
func TestRelayOfNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	addr, _ := h.lookup("allowed.test", dnsmessage.TypeA)
	for _, at := range []netip.Addr{netip.MustParseAddr("198.19.7.7"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.1")} {
		if left := closed(t, h.connect(at, 443)); left != "" {
			t.Errorf("%v answers %q", at, left)
		}
	}
	c := h.connect(addr[0], 7000)
	if left := closed(t, c); left != "" {
		t.Errorf("port 7000 answers %q", left)
	}
	if e := h.await(1); len(e) != 1 || e[0].err == nil || e[0].err.Code() != 403 {
		t.Errorf("entries %+v", e)
	}
	if d := h.dials(); len(d) > 0 {
		t.Errorf("dialled %v", d)
	}
}

// TestHalfClose checks that each side may end while the other continues, and that bytes are counted in both directions.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.at("raw.test:7000", newEcho(t, nil).Addr().String())
			conn := w.to(h, "raw.test", "7000")
			_, err := io.WriteString(conn, "12345")
			testkit.Must(t, err)
			testkit.Must(t, conn.(interface{ CloseWrite() error }).CloseWrite())
			if all := closed(t, conn); all != "12345END" {
				t.Errorf("the client received %q", all)
			}
			e := h.await(1)[0]
			if want := `{"host":"raw.test","port":7000,"sent":5,"received":8,"ended":"both sides had ended"}`; e.data != want {
				t.Errorf("entry %s, want %s", e.data, want)
			}
		})
	}
}

// TestHostSpeaksFirst checks that the host may send first on a granted port.
func TestHostSpeaksFirst(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			l := listen(t)
			h.at("raw.test:7000", l.Addr().String())
			conn := w.to(h, "raw.test", "7000")
			server, err := l.Accept()
			testkit.Must(t, err)
			_, err = io.WriteString(server, "220 ready")
			testkit.Must(t, err)
			testkit.Must(t, server.Close())
			if all := closed(t, conn); all != "220 ready" {
				t.Errorf("the client received %q", all)
			}
		})
	}
}

// TestIdle checks that an idle connection is closed, and an active one is not.
func TestIdle(t *testing.T) {
	t.Parallel()
	h := open(t, func(c *egress.Config) { c.Limits.Idle = 50 * time.Millisecond })
	h.at("raw.test:7000", newEcho(t, nil).Addr().String())
	for _, said := range []string{"", "hello"} {
		conn := ways()[0].to(h, "raw.test", "7000")
		_, err := io.WriteString(conn, said)
		testkit.Must(t, err)
		if all := closed(t, conn); all != said {
			t.Errorf("the client received %q", all)
		}
	}
	for _, e := range h.await(2) {
		if !strings.Contains(e.data, `"ended":"idle"`) {
			t.Errorf("entry %+v", e)
		}
	}
}

// TestSlow checks that a client that does not complete its request is disconnected.
func TestSlow(t *testing.T) {
	t.Parallel()
	h := open(t, func(c *egress.Config) { c.Limits.Hello = 50 * time.Millisecond })
	h.at("allowed.test:443", newEcho(t, nil).Addr().String())
	half := h.dialProxy()
	_, err := io.WriteString(half, "CONNECT allowed.test:443 HTTP/1.1\r\nHo")
	testkit.Must(t, err)
	silent := ways()[0].to(h, "allowed.test", "443")
	relayed := h.to("allowed.test", 443)
	plain := h.to("allowed.test", 80)
	for name, conn := range map[string]net.Conn{"half a header": half, "no ClientHello": silent, "relay": relayed, "no request": plain} {
		if all := closed(t, conn); strings.Contains(all, "200") {
			t.Errorf("%s: answered %q", name, all)
		}
	}
}

// TestLongHeader checks that a header that is too long is refused.
func TestLongHeader(t *testing.T) {
	t.Parallel()
	h := open(t)
	conn := h.dialProxy()
	go func() { // it may be refused before all of it is written
		_, _ = io.WriteString(conn, "GET http://allowed.test/ HTTP/1.1\r\n"+strings.Repeat("X-Long: "+strings.Repeat("x", 1000)+"\r\n", 200))
	}()
	status, err := bufio.NewReader(conn).ReadString('\n')
	testkit.Must(t, err)
	if !strings.Contains(status, "431") {
		t.Errorf("answered %q", status)
	}
}

// TestBounds checks the limits of connections per agent and in total: further connections are closed, and new ones are accepted after
// others have ended.
func TestBounds(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]egress.Limits{"each": {Each: 3}, "all": {All: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, func(c *egress.Config) { c.Limits = limit })
			h.at("raw.test:7000", newEcho(t, nil).Addr().String())
			var held []net.Conn
			for range 3 {
				held = append(held, ways()[0].to(h, "raw.test", "7000"))
			}
			for range 5 {
				if all := closed(t, h.dialProxy()); all != "" {
					t.Errorf("answered %q", all)
				}
			}
			testkit.Must(t, held[0].Close())
			h.await(1)
			conn := h.dialProxy()
			for deadline := time.Now().Add(testkit.Patience); ; { // it is counted until shortly after its outcome is journaled
				_, _ = io.WriteString(conn, "CONNECT raw.test:7000 HTTP/1.1\r\nHost: x\r\n\r\n")
				line, err := bufio.NewReader(conn).ReadString('\n')
				if err == nil && strings.Contains(line, "200") {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("after connections have ended, a new one is still refused: %q, %v", line, err)
				}
				conn = h.dialProxy()
			}
		})
	}
}

// TestStop checks that stop closes the connections of the agent, and returns after their outcomes are journaled.
func TestStop(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.at("raw.test:7000", newEcho(t, nil).Addr().String())
	conn := ways()[0].to(h, "raw.test", "7000")
	idle := h.dialProxy()
	h.stop()
	closed(t, conn)
	closed(t, idle)
	if e := h.await(1)[0]; !strings.Contains(e.data, `"ended":"the agent has ended"`) {
		t.Errorf("entry %+v", e)
	}
	if c, err := net.Dial("tcp", h.proxy); err == nil {
		_ = c.Close()
		t.Error("the proxy still listens")
	}
}

// TestRevoke checks that connections to a host are closed, and no further byte passes, after the token no longer allows the host, for
// each reason.
func TestRevoke(t *testing.T) {
	t.Parallel()
	tests := map[string]func(h *house){
		"revoked":  func(h *house) { h.token.Store(nil) },
		"narrowed": func(h *house) { h.grant([]string{"allowed.test", "raw.test"}) },
		"expired":  func(h *house) { h.tick.Store(6) },
	}
	for name, change := range tests {
		for _, w := range ways() {
			t.Run(name+"/"+w.name, func(t *testing.T) {
				t.Parallel()
				h := open(t)
				token := *h.token.Load()
				token.Granted.ExpiresAtTick = new(int64(5))
				h.token.Store(&token)
				server := newEcho(t, nil)
				h.at("raw.test:7000", server.Addr().String())
				conn := w.to(h, "raw.test", "7000")
				_, err := io.WriteString(conn, "1")
				testkit.Must(t, err)
				_, err = io.ReadFull(conn, make([]byte, 1))
				testkit.Must(t, err)
				change(h)
				_, _ = io.WriteString(conn, "23456") // it may be closed already
				if all := closed(t, conn); all != "" {
					t.Errorf("the client received %q", all)
				}
				e := h.await(1)[0]
				if want := `"sent":1,"received":1,"ended":"no longer allowed"`; !strings.Contains(e.data, want) {
					t.Errorf("entry %s, want %s", e.data, want)
				}
				if n := server.got.Load(); n != 1 {
					t.Errorf("the host got %d bytes", n)
				}
			})
		}
	}
}

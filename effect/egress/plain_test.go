package egress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// seen records the requests of a server.
type seen struct {
	mu    sync.Mutex
	lines []string
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.lines...)
}

// web starts an HTTP server for a name and port, and returns the record of its requests.
func web(t *testing.T, h *house, hostport string) *seen {
	t.Helper()
	s := &seen{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.lines = append(s.lines, fmt.Sprintf("%s %s host=%s body=%s upgrade=%s", r.Method, r.RequestURI, r.Host, body, r.Header.Get("Upgrade")))
		s.mu.Unlock()
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "http://other.test/", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "hello")
	}))
	t.Cleanup(server.Close)
	h.at(hostport, server.Listener.Addr().String())
	return s
}

// TestPlain checks that requests over plain HTTP are parsed, checked one by one, and rewritten with the allowed name as host.
func TestPlain(t *testing.T) {
	t.Parallel()
	const relay, proxy, tunnel = "relay", "proxy", "tunnel"
	tests := []struct {
		name, by, request string
		status            int
		want              string // the request at the server; "": none
	}{
		{"path", relay, "GET /x?a=1;b HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 200, "GET /x?a=1;b host=allowed.test body= upgrade="},
		{"with its port", relay, "GET / HTTP/1.1\r\nHost: Allowed.Test:80\r\n\r\n", 200, "GET / host=allowed.test body= upgrade="},
		{"other host", relay, "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", 403, ""},
		{"other allowed host", relay, "GET / HTTP/1.1\r\nHost: raw.test\r\n\r\n", 403, ""},
		{"other port", relay, "GET / HTTP/1.1\r\nHost: allowed.test:7000\r\n\r\n", 403, ""},
		{"no host", relay, "GET / HTTP/1.0\r\n\r\n", 400, ""},
		{"two hosts", relay, "GET / HTTP/1.1\r\nHost: allowed.test\r\nHost: other.test\r\n\r\n", 400, ""},
		{"trailing dot", relay, "GET / HTTP/1.1\r\nHost: allowed.test.\r\n\r\n", 400, ""},
		{"absolute, other host", relay, "GET http://other.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 403, ""},
		{"redirect", relay, "GET /redirect HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 302, "GET /redirect host=allowed.test body= upgrade="},
		{"both lengths", relay, "POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: other.test\r\n\r\n", 200, "POST / host=allowed.test body= upgrade="},
		{"two lengths", relay, "POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\nabcd", 400, ""},
		{"odd encoding", relay, "POST / HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501, ""},
		{"folded header", relay, "GET / HTTP/1.1\r\nHost: allowed.test\r\nX: a\r\n Host: other.test\r\n\r\n", 200, "GET / host=allowed.test body= upgrade="},
		{"no HTTP", relay, "EHLO there\r\n\r\n", 400, ""},
		{"upgrade to HTTP/2", relay, "GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n", 200, "GET / host=allowed.test body= upgrade="},
		{"HTTP/2 at once", relay, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, ""},

		{"absolute", proxy, "GET http://allowed.test/x HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 200, "GET /x host=allowed.test body= upgrade="},
		{"absolute on a granted port", proxy, "GET http://raw.test:7000/x HTTP/1.1\r\nHost: x\r\n\r\n", 200, "GET /x host=raw.test:7000 body= upgrade="},
		{"with another header", proxy, "GET http://allowed.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n", 200, "GET / host=allowed.test body= upgrade="},
		{"not allowed", proxy, "GET http://other.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 403, ""},
		{"not on that port", proxy, "GET http://allowed.test:81/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 403, ""},
		{"user", proxy, "GET http://me:secret@allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 400, ""},
		{"user that looks like a host", proxy, "GET http://allowed.test@other.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 400, ""},
		{"https", proxy, "GET https://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 400, ""},
		{"path", proxy, "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 400, ""},
		{"address", proxy, "GET http://127.0.0.1/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 403, ""},

		{"path", tunnel, "GET /x HTTP/1.1\r\nHost: allowed.test\r\n\r\n", 200, "GET /x host=allowed.test body= upgrade="},
		{"other host", tunnel, "GET /x HTTP/1.1\r\nHost: other.test\r\n\r\n", 403, ""},
	}
	for _, tt := range tests {
		t.Run(tt.by+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			saw := web(t, h, "allowed.test:80")
			h.at("raw.test:7000", h.hosts["allowed.test:80"])
			var conn net.Conn
			switch tt.by {
			case relay:
				conn = h.to("allowed.test", 80)
			case proxy:
				conn = h.dialProxy()
			default:
				conn = ways()[0].to(h, "allowed.test", "80")
			}
			_, err := io.WriteString(conn, tt.request)
			testkit.Must(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if tt.status == 0 {
				if err == nil && resp.StatusCode < 400 {
					t.Errorf("answered %d", resp.StatusCode)
				}
			} else if err != nil || resp.StatusCode != tt.status {
				t.Errorf("answered %+v, %v", resp, err)
			}
			if resp != nil && resp.StatusCode == 302 && resp.Header.Get("Location") != "http://other.test/" {
				t.Errorf("redirected to %q", resp.Header.Get("Location"))
			}
			got := strings.Join(saw.all(), "\n")
			if got != tt.want {
				t.Errorf("the server saw %q, want %q", got, tt.want)
			}
			if tt.status == 403 {
				if e := h.await(1)[0]; e.err == nil || e.err.Code() != 403 {
					t.Errorf("entry %+v", e)
				}
			}
			for _, d := range h.dials() {
				if d != "allowed.test:80" && d != "raw.test:7000" {
					t.Errorf("dialled %s", d)
				}
			}
		})
	}
}

// TestPlainKeepAlive checks that each request of a persistent connection is checked, and has its own journal entry with its bytes.
func TestPlainKeepAlive(t *testing.T) {
	t.Parallel()
	h := open(t)
	saw := web(t, h, "allowed.test:80")
	conn := h.dialProxy()
	r := bufio.NewReader(conn)
	for _, host := range []string{"allowed.test", "allowed.test", "other.test"} {
		_, err := io.WriteString(conn, "GET http://"+host+"/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
		testkit.Must(t, err)
		resp, err := http.ReadResponse(r, nil)
		testkit.Must(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		testkit.Must(t, err)
		if want := map[bool]int{true: 200, false: 403}[host == "allowed.test"]; resp.StatusCode != want {
			t.Errorf("%s: %d", host, resp.StatusCode)
		}
	}
	if n := len(saw.all()); n != 2 {
		t.Errorf("the server saw %d requests", n)
	}
	list := h.await(3)
	for _, e := range list[:2] {
		if e.err != nil || !strings.Contains(e.data, `"ended":"the exchange was complete"`) || strings.Contains(e.data, `"sent":0`) || strings.Contains(e.data, `"received":0`) {
			t.Errorf("entry %+v", e)
		}
	}
	if e := list[2]; e.in.(*schema.NetConnectInput).Host != "other.test" || e.err == nil {
		t.Errorf("entry %+v", e)
	}
}

// TestWebsocket checks that a WebSocket passes bytes in both directions, and ends with the grant.
func TestWebsocket(t *testing.T) {
	t.Parallel()
	h := open(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(conn, both)
	}))
	t.Cleanup(server.Close)
	h.at("allowed.test:80", server.Listener.Addr().String())
	conn := h.to("allowed.test", 80)
	_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	testkit.Must(t, err)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	testkit.Must(t, err)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("answered %d", resp.StatusCode)
	}
	_, err = io.WriteString(conn, "ping")
	testkit.Must(t, err)
	back := make([]byte, 4)
	_, err = io.ReadFull(r, back)
	testkit.Must(t, err)
	h.token.Store(nil)
	_, _ = io.WriteString(conn, "pong") // it may be closed already
	if all := closed(t, &peeked{conn, r}); all != "" {
		t.Errorf("the client received %q", all)
	}
	if e := h.await(1)[0]; !strings.Contains(e.data, `"ended":"no longer allowed"`) {
		t.Errorf("entry %+v", e)
	}
}

// TestBrokenAnswer checks that an incomplete answer of the host is incomplete for the client too.
func TestBrokenAnswer(t *testing.T) {
	t.Parallel()
	h := open(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	h.at("allowed.test:80", server.Listener.Addr().String())
	conn := h.to("allowed.test", 80)
	_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
	testkit.Must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testkit.Must(t, err)
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("the incomplete body %q was read without an error", body)
	}
	if e := h.await(1)[0]; !strings.Contains(e.data, `"ended":"the exchange broke off"`) {
		t.Errorf("entry %+v", e)
	}
}

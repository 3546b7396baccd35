package console_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/console"
	"github.com/promptware-os/pwos/internal/testkit"
)

// routes has all routes of the server.
var routes = []string{
	"GET /", "GET /page/app.js", "GET /page/vendor/preact.mjs", "POST /api/login {}", "POST /api/logout {}", "POST /api/call/Process.Pause {}",
	"GET /api/events", "GET /api/processes", "GET /api/log", "GET /api/entry/1", "GET /api/approvals", "GET /api/graph?correlation=x", "GET /api/search?query=x", "GET /api/past?until=1", "GET /nothing",
}

// away dials a kernel that is unreachable.
func away(context.Context) (*client.Client, error) { return nil, errors.New("no kernel in this test") }

// TestForeignRequests checks that every route refuses a request for another host (DNS rebinding) or from a page of another origin or
// site, even with a valid token, and that the answer has no data of the page or the kernel.
func TestForeignRequests(t *testing.T) {
	t.Parallel()
	s := serveOf(t, away)
	token := s.login(t)
	address := strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/")
	_, port, _ := strings.Cut(address, ":")
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for what, change := range map[string]func(*http.Request){
		"rebound name":          func(r *http.Request) { r.Host = "evil.example:" + port },
		"name without port":     func(r *http.Request) { r.Host = "localhost" },
		"another port":          func(r *http.Request) { r.Host = "127.0.0.1:1" },
		"name that begins so":   func(r *http.Request) { r.Host = "127.0.0.1.evil.example:" + port },
		"address of all":        func(r *http.Request) { r.Host = "0.0.0.0:" + port },
		"foreign origin":        header("Origin", "https://evil.example"),
		"null origin":           header("Origin", "null"),
		"origin of a neighbour": header("Origin", "http://127.0.0.1:1"),
		"origin over https":     header("Origin", "https://"+address),
		"two origins":           func(r *http.Request) { r.Header["Origin"] = []string{"http://" + address, "https://evil.example"} },
		"foreign fetch": func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "cors")
		},
		"neighbour's fetch": func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "same-site")
			r.Header.Set("Sec-Fetch-Mode", "no-cors")
		},
		"frame": func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
			r.Header.Set("Sec-Fetch-Dest", "iframe")
		},
	} {
		for _, route := range routes {
			a := s.ask(t, route, token, change)
			if id := a.errorID(); a.status != http.StatusForbidden || id != "console.host" && id != "console.origin" {
				t.Errorf("%s, %s: %d %.80s", what, route, a.status, a.body)
			}
		}
	}
	for _, host := range []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port} {
		own := func(r *http.Request) { r.Host = host; r.Header.Set("Origin", "http://"+host) }
		if a := s.ask(t, "GET /", "", own); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", host, a.status, a.body)
		}
	}
	opened := func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.Header.Set("Sec-Fetch-Dest", "document")
	}
	if a := s.ask(t, "GET /", "", opened); a.status != http.StatusOK {
		t.Errorf("opened from a file: %d", a.status)
	}
	if a := s.ask(t, "GET /api/processes", token, opened); a.status != http.StatusForbidden {
		t.Errorf("a navigation to the API: %d", a.status)
	}
}

// TestHeaders checks that every answer, including errors, has the policy of the page and Cache-Control: no-store, and no CORS header.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := serveOf(t, away)
	for _, route := range append([]string{"OPTIONS /api/events", "PUT /api/login {}", "GET /api/login", "GET /page/../server.go", "GET /page/vendor/SUMS"}, routes...) {
		a := s.ask(t, route, "")
		policy := a.header.Get("Content-Security-Policy")
		for _, part := range []string{
			"default-src 'none';", "script-src 'self' 'sha256-", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'",
			"require-trusted-types-for 'script'; trusted-types 'none'",
		} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy has no %s: %s", route, part, policy)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %s", route, policy)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "", "Set-Cookie": "",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", route, name, got, want)
			}
		}
	}
}

// TestRoutesNeedASession checks that the routes with data of the kernel refuse requests without a session token in the header.
func TestRoutesNeedASession(t *testing.T) {
	t.Parallel()
	s := serveOf(t, away)
	token := s.login(t)
	for _, route := range routes {
		if !strings.Contains(route, " /api/") || strings.Contains(route, "login") {
			continue
		}
		for what, change := range map[string]func(*http.Request){
			"none":      func(*http.Request) {},
			"wrong":     func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token[1:]+"A") },
			"no bearer": func(r *http.Request) { r.Header.Set("Authorization", token) },
			"cookie":    func(r *http.Request) { r.Header.Set("Cookie", "token="+token) },
			"query":     func(r *http.Request) { r.URL.RawQuery = "token=" + token },
		} {
			if a := s.ask(t, route, "", change); a.status != http.StatusUnauthorized || a.errorID() != "console.login" {
				t.Errorf("%s, %s: %d %s", route, what, a.status, a.body)
			}
		}
	}
}

// TestOpenAddress checks that New refuses a listener that is not on a loopback address.
func TestOpenAddress(t *testing.T) {
	t.Parallel()
	listener := testkit.Value(net.Listen("tcp", "0.0.0.0:0"))(t)
	defer listener.Close()
	if _, err := console.New(console.Options{Listener: listener, Dial: away}); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("a console for all: %v", err)
	}
}

// TestTooManyConnections checks that another user who holds more connections than the limit keeps nobody out: the oldest without a
// session are closed, a page can log in, and its connection stays.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	s := serveOf(t, away)
	address := strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/")
	var open []net.Conn
	t.Cleanup(func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	})
	hold := func() {
		for range 200 {
			open = append(open, testkit.Value(net.Dial("tcp", address))(t))
		}
	}
	hold()
	for _, conn := range open[:50] {
		testkit.Must(t, conn.SetReadDeadline(time.Now().Add(testkit.Patience)))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a connection beyond the limit is open: %v", err)
		}
	}
	token := s.login(t)
	reused := false
	for range 2 {
		traced := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
		r := testkit.Value(http.NewRequestWithContext(traced, "GET", s.URL()+"api/kernels", nil))(t)
		r.Header.Set("Authorization", "Bearer "+token)
		resp := testkit.Value(s.web.Do(r))(t)
		_, err := io.Copy(io.Discard, resp.Body)
		testkit.Must(t, errors.Join(err, resp.Body.Close()))
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusTooManyRequests {
			t.Errorf("the page got %s", resp.Status)
		}
		hold()
	}
	if !reused {
		t.Error("the page's connection was closed")
	}
}

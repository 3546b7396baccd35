package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const canary = "sk-CANARY/0123456789+x"

// model starts an upstream that answers with the request without the credential, and repeats the credential in headers on request.
func model(t *testing.T) (*httptest.Server, *seen) {
	t.Helper()
	s := &seen{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.lines = append(s.lines, fmt.Sprintf("%s %s key=%q auth=%q cookie=%q other=%q body=%s", r.Method, r.RequestURI,
			r.Header["X-Key"], r.Header["Authorization"], r.Header["Cookie"], r.Header["X-Api-Key"], body))
		s.mu.Unlock()
		switch r.URL.Path {
		case "/v1/redirect":
			w.Header().Set("Location", "http://elsewhere.test/?key="+r.Header.Get("X-Key"))
			w.WriteHeader(http.StatusFound)
		case "/v1/reflect":
			key := r.Header.Get("X-Key")
			w.Header().Set("X-Early", key)
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("X-Echo", "you sent "+key)
			w.Header().Set("X-Escaped", url.QueryEscape(key))
			w.Header()["X-"+key] = []string{"in the name"}
			w.Header().Set("Trailer", "X-Late")
			w.Header().Set("X-Kept", "yes")
			_, _ = io.WriteString(w, "ok")
			w.Header().Set("X-Late", key)
		case "/v1/fail":
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Pwos-Error", "forged")
			_, _ = io.WriteString(w, `{"model":"m-1","usage":{"prompt_tokens":12,"completion_tokens":3},"choices":[]}`)
		}
	}))
	t.Cleanup(server.Close)
	return server, s
}

// upstream returns an upstream for a server.
func upstream(t testing.TB, address string, change ...func(*egress.UpstreamConfig)) *egress.Upstream {
	t.Helper()
	target, err := url.Parse(address + "/v1")
	testkit.Must(t, err)
	c := egress.UpstreamConfig{
		Name: "model", URL: target, Header: "x-key",
		Secret: func(context.Context) (string, error) { return canary, nil },
	}
	for _, text := range []string{"POST /v1/chat", "POST /v1/models/…", "GET /v1/…", "TRACEX /v1/x"} {
		rule, err := schema.ParseNetRule(text)
		testkit.Must(t, err)
		c.Rules = append(c.Rules, rule)
	}
	for _, f := range change {
		f(&c)
	}
	u, err := egress.NewUpstream(c)
	testkit.Must(t, err)
	return u
}

// streaming starts a server that answers each request with the events of the next channel of answers until that is closed.
func streaming(t testing.TB, answers <-chan chan string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for event := range <-answers {
			_, _ = io.WriteString(w, event)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func withUpstream(u *egress.Upstream) func(*egress.Config) {
	return func(c *egress.Config) { c.Upstreams = []*egress.Upstream{u} }
}

// raw sends a request unchanged, and returns all bytes of the answer.
func raw(t *testing.T, base, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	_, err = io.WriteString(conn, request)
	testkit.Must(t, err)
	return closed(t, conn)
}

// TestUpstream checks which requests are forwarded, that the kernel's credential replaces those of the agent, and the journal entries.
func TestUpstream(t *testing.T) {
	t.Parallel()
	const credential = `key=["` + canary + `"] auth=[] cookie=[] other=[]`
	tests := []struct {
		name, request string
		status        int
		saw           string // the request at the upstream; "": none
		path          string // in the journal
	}{
		{"allowed", "GET /v1/models HTTP/1.1\r\nHost: x\r\n", 200, "GET /v1/models " + credential + " body=", "/v1/models"},
		{"query", "GET /v1/models?a=b&key=mine HTTP/1.1\r\nHost: x\r\n", 200, "GET /v1/models?a=b&key=mine " + credential + " body=", "/v1/models"},
		{"body", "POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n", 200, "POST /v1/chat " + credential + " body=hello", "/v1/chat"},
		{"own credentials", "GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer mine\r\nX-Api-Key: mine\r\nX-Key: mine\r\nx-key: too\r\nCookie: a=b\r\n", 200, "GET /v1/models " + credential + " body=", "/v1/models"},
		{"credential as a header of the connection", "GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: X-Key, close\r\n", 200, "GET /v1/models " + credential + " body=", "/v1/models"},
		{"absolute", "GET http://elsewhere.test/v1/models HTTP/1.1\r\nHost: x\r\n", 200, "GET /v1/models " + credential + " body=", "/v1/models"},
		{"redirect", "GET /v1/redirect HTTP/1.1\r\nHost: x\r\n", 302, "GET /v1/redirect " + credential + " body=", "/v1/redirect"},
		{"failure", "GET /v1/fail HTTP/1.1\r\nHost: x\r\n", 502, "GET /v1/fail " + credential + " body=", "/v1/fail"},
		{"another method", "DELETE /v1/models HTTP/1.1\r\nHost: x\r\n", 403, "", "/v1/models"},
		{"another path", "POST /v1/chat2 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n", 403, "", "/v1/chat2"},
		{"above the base", "GET /admin HTTP/1.1\r\nHost: x\r\n", 403, "", "/admin"},
		{"beside the base", "GET /v1x HTTP/1.1\r\nHost: x\r\n", 403, "", "/v1x"},
		{"dots", "GET /v1/../admin HTTP/1.1\r\nHost: x\r\n", 403, "", "/v1/../admin"},
		{"escaped dots", "GET /v1/%2e%2E/admin HTTP/1.1\r\nHost: x\r\n", 403, "", "/v1/%2e%2E/admin"},
		{"escaped slash", "GET /v1/..%2fadmin HTTP/1.1\r\nHost: x\r\n", 403, "", "/v1/..%2fadmin"},
		{"escaped twice", "GET /v1/%252e%252e/admin HTTP/1.1\r\nHost: x\r\n", 403, "", "/v1/%252e%252e/admin"},
		{"backslash", "GET /v1/..\\admin HTTP/1.1\r\nHost: x\r\n", 403, "", "/v1/..%5Cadmin"},
		{"two slashes", "GET /v1//models HTTP/1.1\r\nHost: x\r\n", 403, "", "/v1//models"},
		{"parameters", "GET /v1/..;/admin HTTP/1.1\r\nHost: x\r\n", 403, "", "/v1/..;/admin"},
		{"trace", "TRACE /v1/chat HTTP/1.1\r\nHost: x\r\n", 403, "", "/v1/chat"},
		{"connect", "CONNECT elsewhere.test:443 HTTP/1.1\r\nHost: x\r\n", 403, "", "*"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, saw := model(t)
			h := open(t, withUpstream(upstream(t, server.URL)))
			h.grant(nil, "Upstream:model")
			body := ""
			if strings.Contains(tt.request, "Content-Length: 5") {
				body = "hello"
			}
			answer := raw(t, h.upstreams["model"], strings.Replace(tt.request, "Host: x\r\n", "Host: x\r\nConnection: close\r\n", 1)+"\r\n"+body)
			if !strings.HasPrefix(answer, fmt.Sprintf("HTTP/1.1 %d ", tt.status)) {
				t.Errorf("answered %q", answer)
			}
			if strings.Contains(answer, canary) || strings.Contains(answer, url.QueryEscape(canary)) {
				t.Errorf("the answer has the credential: %q", answer)
			}
			if got := strings.Join(saw.all(), "\n"); got != tt.saw {
				t.Errorf("the upstream saw %s, want %s", got, tt.saw)
			}
			e := h.await(1)[0]
			in := e.in.(*schema.NetRequestInput)
			if in.Path != tt.path || in.Upstream != "model" {
				t.Errorf("entry %+v of %+v", e, in)
			}
			switch {
			case tt.status == 403 && (e.err == nil || e.err.Code() != 403), tt.status == 502 && (e.err == nil || e.err.Code() != 502):
				t.Errorf("entry %+v", e)
			case tt.status == 200:
				want := fmt.Sprintf(`"path":%q,"status":200,"sent":%d,"received":79,"usage":{"model":"m-1","input_tokens":12,"output_tokens":3,"micro_usd":108,"dearest":true},"ended":"the answer was complete"`, tt.path, len(body))
				if !strings.Contains(e.data, want) {
					t.Errorf("entry %s, want %s", e.data, want)
				}
			}
		})
	}
}

// TestUpstreamHidesTheCredential checks that the credential is not in headers, 1xx answers, trailers or the journal.
func TestUpstreamHidesTheCredential(t *testing.T) {
	t.Parallel()
	server, _ := model(t)
	h := open(t, withUpstream(upstream(t, server.URL, func(c *egress.UpstreamConfig) { c.Header = "X-Key:  Bearer" })))
	h.grant(nil, "Upstream:model")
	answer := raw(t, h.upstreams["model"], "GET /v1/reflect HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTE: trailers\r\n\r\n")
	if !strings.Contains(answer, "X-Kept: yes") || !strings.Contains(answer, " 103 ") {
		t.Errorf("answered %q", answer)
	}
	everything := answer + fmt.Sprintf("%+v", h.await(1))
	for _, form := range []string{canary, url.QueryEscape(canary)} {
		if strings.Contains(strings.ToLower(everything), strings.ToLower(form)) {
			t.Errorf("the answer or the journal has the credential: %q", everything)
		}
	}
}

// TestUpstreamIsGranted checks that an upstream serves only agents with its grant, and only while they have it.
func TestUpstreamIsGranted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		allowed []string
		status  int
	}{
		{[]string{"Upstream:model"}, 200},
		{[]string{"Upstream:*"}, 200},
		{[]string{"*"}, 403},
		{[]string{"Upstream:model2"}, 403},
		{nil, 403},
	} {
		server, saw := model(t)
		h := open(t, withUpstream(upstream(t, server.URL)))
		h.grant([]string{"*"}, tt.allowed...)
		resp, err := http.Get(h.upstreams["model"] + "/v1/models")
		testkit.Must(t, err)
		text, err := io.ReadAll(resp.Body)
		testkit.Must(t, err)
		testkit.Must(t, resp.Body.Close())
		if resp.StatusCode != tt.status || len(saw.all()) != map[int]int{200: 1, 403: 0}[tt.status] {
			t.Errorf("%v: %d %s", tt.allowed, resp.StatusCode, text)
		}
		if tt.status == 403 && !strings.Contains(string(text), `"pwos cap grant 7 --add Upstream:model"`) {
			t.Errorf("%v: the refusal is %s", tt.allowed, text)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestUpstreamStream checks that events are forwarded as they arrive, that their usage is recorded, and that the end of the grant ends
// the stream.
func TestUpstreamStream(t *testing.T) {
	t.Parallel()
	answers := make(chan chan string, 1)
	server := streaming(t, answers)
	h := open(t, withUpstream(upstream(t, server.URL)))
	for _, revoked := range []bool{false, true} {
		h.grant(nil, "Upstream:model")
		next := make(chan string)
		answers <- next
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.upstreams["model"], "http://"))
		testkit.Must(t, err)
		testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
		_, err = io.WriteString(conn, "GET /v1/stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		testkit.Must(t, err)
		next <- "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m-2\",\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n"
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		testkit.Must(t, err)
		events := bufio.NewReader(resp.Body)
		line, err := events.ReadString('\n') // before the answer has ended
		testkit.Must(t, err)
		if line != "event: message_start\n" {
			t.Errorf("the client received %q", line)
		}
		if revoked {
			h.grant(nil)
		}
		next <- "event: message_delta\ndata: {\"usage\":{\"output_tokens\":15}}\n\n"
		if !revoked {
			next <- "data: [DONE]\n\n"
		}
		close(next)
		rest, err := io.ReadAll(events)
		if (err != nil) != revoked || strings.Contains(string(rest), "message_delta") == revoked {
			t.Errorf("revoked %v: after that the client received %q, %v", revoked, rest, err)
		}
		_ = conn.Close()
	}
	list := h.await(2)
	if want := `"usage":{"model":"m-2","input_tokens":25,"output_tokens":15,"micro_usd":400,"dearest":true},"ended":"the answer was complete"`; !strings.Contains(list[0].data, want) {
		t.Errorf("entry %s", list[0].data)
	}
	if e := list[1]; !strings.Contains(e.data, `"ended":"no longer allowed"`) {
		t.Errorf("entry %+v", e)
	}
}

// TestUpstreamWithoutCredential checks that no request is sent if the credential cannot be opened.
func TestUpstreamWithoutCredential(t *testing.T) {
	t.Parallel()
	server, saw := model(t)
	h := open(t, withUpstream(upstream(t, server.URL, func(c *egress.UpstreamConfig) {
		c.Secret = func(context.Context) (string, error) { return "", fault.UpstreamNoCredential.New("it is sealed") }
	})))
	h.grant(nil, "Upstream:model")
	answer := raw(t, h.upstreams["model"], "GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, "it is sealed") || len(saw.all()) > 0 {
		t.Errorf("answered %q", answer)
	}
}

// TestIntercept checks that connections to the host of an intercepted upstream get a certificate of the kernel for that name, over each
// way.
func TestIntercept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	authority, err := egress.OpenAuthority(file, []string{"api.model.test"}, time.Now)
	testkit.Must(t, err)
	trust := x509.NewCertPool()
	if !trust.AppendCertsFromPEM(authority.Certificate()) {
		t.Fatal("no certificate")
	}
	cert, roots := certificate(t, "api.model.test")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s %v", r.Host, r.URL.Path, r.Header.Get("X-Key") == canary)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.StartTLS()
	t.Cleanup(server.Close)
	u := upstream(t, "https://api.model.test", func(c *egress.UpstreamConfig) { c.Intercept, c.RootCAs = true, roots })
	u.DialTo(server.Listener.Addr().String())
	for _, w := range ways() {
		h := open(t, withUpstream(u), func(c *egress.Config) { c.Authority = authority })
		h.grant([]string{"allowed.test"}, "Upstream:model")
		for _, name := range []string{"api.model.test", "allowed.test"} {
			conn := w.to(h, "api.model.test", "443")
			secured := tls.Client(conn, &tls.Config{RootCAs: trust, ServerName: name})
			_, err := io.WriteString(secured, "GET /v1/models HTTP/1.1\r\nHost: api.model.test\r\nConnection: close\r\n\r\n")
			if name != "api.model.test" {
				if err == nil {
					t.Errorf("%s: a request for %s was answered", w.name, name)
				}
				_ = conn.Close()
				continue
			}
			testkit.Must(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(secured), nil)
			testkit.Must(t, err)
			body, err := io.ReadAll(resp.Body)
			testkit.Must(t, err)
			if string(body) != "api.model.test /v1/models true" {
				t.Errorf("%s: answered %s", w.name, body)
			}
		}
		if _, code := h.lookup("api.model.test", dnsmessage.TypeA); code != dnsmessage.RCodeSuccess {
			t.Errorf("%s: lookup %v", w.name, code)
		}
		h.grant([]string{"allowed.test"})
		if _, code := h.lookup("api.model.test", dnsmessage.TypeA); code != dnsmessage.RCodeNameError {
			t.Errorf("%s: lookup without the grant: %v", w.name, code)
		}
		if _, _, status, _ := h.proxied("api.model.test:443"); status != 403 {
			t.Errorf("%s: CONNECT without the grant: %d", w.name, status)
		}
		if d := h.dials(); len(d) > 0 {
			t.Errorf("%s: dialled %v", w.name, d)
		}
	}
}

// TestAuthorityForOthers checks that programs that verify with OpenSSL accept the authority.
func TestAuthorityForOthers(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	authority, err := egress.OpenAuthority(filepath.Join(dir, "key"), []string{"api.model.test"}, time.Now)
	testkit.Must(t, err)
	ca := filepath.Join(dir, "ca.pem")
	testkit.Must(t, os.WriteFile(ca, authority.Certificate(), 0o600))
	for name, good := range map[string]bool{"api.model.test": true, "other.test": false} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.TLS = authority.TLS(name)
		server.StartTLS()
		out, err := exec.Command("curl", "-sS", "--noproxy", "*", "--cacert", ca, "--connect-to", name+":443:"+server.Listener.Addr().String(), "https://"+name+"/").CombinedOutput()
		if (err == nil) != good {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		server.Close()
	}
}

// TestAuthority checks that the key file is private and is read again after a restart, and that the certificate is valid only for
// the intercepted hosts.
func TestAuthority(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	first, err := egress.OpenAuthority(file, []string{"api.model.test"}, time.Now)
	testkit.Must(t, err)
	info, err := os.Stat(file)
	testkit.Must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	before, err := os.ReadFile(file)
	testkit.Must(t, err)
	again, err := egress.OpenAuthority(file, []string{"api.model.test"}, time.Now)
	testkit.Must(t, err)
	after, err := os.ReadFile(file)
	testkit.Must(t, err)
	if string(before) != string(after) {
		t.Error("the key has changed")
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(first.Certificate())
	for _, authority := range []*egress.Authority{first, again} {
		for name, good := range map[string]bool{"api.model.test": true, "other.test": false} {
			leaf, err := authority.Leaf(name)
			testkit.Must(t, err)
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: trust, DNSName: name}); (err == nil) != good {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	testkit.Must(t, os.Chmod(file, 0o640))
	if _, err := egress.OpenAuthority(file, nil, time.Now); err == nil || !strings.Contains(err.Error(), "may be used by other users") {
		t.Errorf("a key that others may read: %v", err)
	}
	testkit.Must(t, os.Chmod(file, 0o600))
	testkit.Must(t, os.WriteFile(file, []byte("x"), 0o600))
	if _, err := egress.OpenAuthority(file, nil, time.Now); err == nil || !strings.Contains(err.Error(), "holds no key") {
		t.Errorf("a damaged key: %v", err)
	}
}

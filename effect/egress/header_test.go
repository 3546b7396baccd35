package egress_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// gullible is a server that obeys each header, trailer and query parameter that any common server obeys. It reads names as CGI does, and
// collects what it was made to do other than GET or POST /v1/chat with the kernel's credential.
type gullible struct {
	mu      sync.Mutex
	seen    int
	names   map[string]int
	trusted []string
}

func (g *gullible) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the trailers follow
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen++
	if g.names == nil {
		g.names = map[string]int{}
	}
	if r.URL.Path != "/v1/chat" || r.Method != http.MethodGet && r.Method != http.MethodPost {
		g.trusted = append(g.trusted, r.Method+" "+r.URL.Path)
	}
	for _, fields := range []http.Header{r.Header, r.Trailer} {
		for name, values := range fields {
			g.names[name]++
			key := strings.ToUpper(strings.Map(func(c rune) rune {
				if c == '-' || c == '.' || c == ' ' {
					return '_'
				}
				return c
			}, name))
			obeyed := slices.ContainsFunc([]string{"OVERRIDE", "HTTP_METHOD", "ORIGINAL", "REWRITE", "FORWARDED", "X_HOST", "X_METHOD", "X_PATH", "DESTINATION", "SENDFILE"},
				func(part string) bool { return strings.Contains(key, part) })
			credential := slices.Contains([]string{"AUTHORIZATION", "X_API_KEY", "API_KEY", "X_GOOG_API_KEY", "COOKIE", "X_KEY"}, key) && (name != "X-Key" || !slices.Equal(values, []string{canary}))
			if obeyed || credential {
				g.trusted = append(g.trusted, fmt.Sprint(name, ": ", values))
			}
		}
	}
	for name := range r.URL.Query() {
		if strings.Contains(strings.ToLower(name), "_method") || strings.Contains(strings.ToLower(name), "override") {
			g.trusted = append(g.trusted, "query "+name)
		}
	}
}

// spellings returns spellings of a header's name that servers take for it.
func spellings(name string) []string {
	list := []string{name, strings.ToLower(name), strings.ToUpper(name), strings.ReplaceAll(name, "-", "_"), strings.Replace(name, "-", "_", 1), strings.ReplaceAll(name, "-", ".")}
	if i := strings.LastIndex(name, "-"); i > 0 {
		list = append(list, name[:i]+"_"+name[i+1:])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestUpstreamHeaders checks that no header, trailer, query or framing makes a server do anything but what the rules allow, even if the
// operator's list has wide prefixes.
func TestUpstreamHeaders(t *testing.T) {
	t.Parallel()
	g := &gullible{}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	wide, err := schema.ParseNetHeaders([]string{schema.DefaultHeaders, "x-*", "http-*", "api-*", "content-*"})
	testkit.Must(t, err)
	h := open(t, withUpstream(upstream(t, server.URL, func(c *egress.UpstreamConfig) {
		c.Headers, c.Rules = wide, nil
		for _, text := range []string{"POST /v1/chat", "GET /v1/chat"} {
			rule, err := schema.ParseNetRule(text)
			testkit.Must(t, err)
			c.Rules = append(c.Rules, rule)
		}
	})))
	h.grant(nil, "Upstream:model")
	names := []string{
		"X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method", "X-Original-URL", "X-Rewrite-URL", "X-Original-URI", "X-Original-Method", "X-Original-Host", "X-Forwarded-Host",
		"X-Forwarded-Path", "X-Forwarded-Prefix", "X-Forwarded-Method", "X-Envoy-Original-Path", "X-HTTP-Host-Override", "X-Host", "X-Path", "Method-Override", "Destination", "X-Accel-Redirect", "X-Sendfile",
		"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie", "X-Key",
	}
	var requests []string
	ask := func(format string, args ...any) {
		requests = append(requests, fmt.Sprintf(format, args...))
	}
	for _, name := range names {
		for _, one := range spellings(name) {
			ask("POST /v1/chat HTTP/1.1\r\nHost: x\r\n%s: DELETE\r\nContent-Length: 0\r\n\r\n", one)
			ask("GET /v1/chat HTTP/1.1\r\nHost: x\r\nConnection: close, %s\r\n%[1]s: /admin\r\n\r\n", one)
			ask("POST /v1/chat HTTP/1.1\r\nHost: x\r\nTrailer: %s\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n%[1]s: PUT\r\n\r\n", one)
			ask("POST /v1/chat HTTP/1.1\r\nHost: x\r\n%s: PUT\r\n%[1]s: GET\r\nContent-Length: 0\r\n\r\n", one)
		}
	}
	for _, target := range []string{
		"/v1/chat?_method=DELETE", "/v1/chat?%5fmethod=DELETE", "/v1/chat?a=1;_method=PUT", "/v1/chat?X-HTTP-Method-Override=PUT", "/v1/%c0%ae%c0%ae/admin", "/v1/chat/%e0%80%ae%e0%80%ae/admin",
		"/v1/chat/..%ef%bc%8fadmin", "/v1/chat%0d%0aX:y", "/v1/chat%3f", "/v1/chat%23", "/v1/chat%3b", "//v1/chat", "/v1/chat/", "/v1/./chat", "/v1/%63hat2", "http://elsewhere.test/admin", "/v1/chat/%252e%252e", "/v1/chat%u002e",
	} {
		ask("GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
	}
	for _, framing := range []string{
		"Content-Length: 3\r\nContent-Length: 4", "Content-Length: 3, 4", "Content-Length: 4\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
		"Transfer-Encoding: xchunked", "Transfer-Encoding : chunked", "Content_Length: 4", "Content-Length: +4", "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: x",
		"Upgrade: websocket, h2c\r\nConnection: Upgrade\r\nContent-Length: 0", "Expect: 100-continue\r\nContent-Length: 4", "Host: y\r\nContent-Length: 0", "X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 0",
	} {
		ask("POST /v1/chat HTTP/1.1\r\nHost: x\r\n%s\r\n\r\nDELETE /v1/admin HTTP/1.1\r\nHost: x\r\n\r\n", framing)
	}
	for _, request := range requests {
		if !strings.Contains(request, "Connection: ") {
			request = strings.Replace(request, "Host: x\r\n", "Host: x\r\nConnection: close\r\n", 1)
		}
		if answer := raw(t, h.upstreams["model"], request); strings.Contains(answer, canary) {
			t.Errorf("%q: the answer has the credential", request)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t.Logf("%d requests, %d forwarded with the headers %v", len(requests), g.seen, g.names)
	if g.seen < 300 || g.names["X-Key"] != g.seen {
		t.Errorf("%d of %d requests reached the server, %d with the credential", g.seen, len(requests), g.names["X-Key"])
	}
	for _, one := range g.trusted {
		t.Errorf("the server was given %s", one)
	}
}

// TestUpstreamPassesHeaders checks that the headers of the clients of model APIs pass, and that a list replaces the default.
func TestUpstreamPassesHeaders(t *testing.T) {
	t.Parallel()
	const sent = "Accept: text/event-stream\r\nAnthropic-Version: 2023-06-01\r\nAnthropic-Beta: a\r\nAnthropic-Beta: b\r\nX-Stainless-Lang: js\r\nX-App: cli\r\nUser-Agent: u\r\n" +
		"OpenAI-Organization: o\r\nsession_id: s\r\nOriginator: codex\r\nX-Goog-Api-Client: g\r\nMcp-Session-Id: m\r\nTraceparent: t\r\nIdempotency-Key: i\r\nX-Team: red\r\nX-Other: no\r\n"
	for _, tt := range []struct {
		headers []string
		want    string
		more    string
	}{
		{nil, "Accept Accept-Encoding Anthropic-Beta Anthropic-Version Idempotency-Key Mcp-Session-Id Openai-Organization Originator Session_id Traceparent User-Agent X-App X-Goog-Api-Client X-Key X-Stainless-Lang", ""},
		{[]string{"X-Team", "accept"}, "Accept Accept-Encoding X-Key X-Team", ""},
		{[]string{}, "Accept-Encoding X-Key", ""},
		{[]string{"sec-websocket-*"}, "Accept-Encoding Connection Sec-Websocket-Version Upgrade X-Key", "Connection: Upgrade, X-Key, close\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\n"},
	} {
		got := make(chan http.Header, 1)
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
		h := open(t, withUpstream(upstream(t, server.URL, func(c *egress.UpstreamConfig) {
			list, err := schema.ParseNetHeaders(tt.headers)
			testkit.Must(t, err)
			c.Headers = list
		})))
		h.grant(nil, "Upstream:model")
		raw(t, h.upstreams["model"], "GET /v1/models HTTP/1.1\r\nHost: x\r\n"+cmp.Or(tt.more, "Connection: close\r\n")+sent+"\r\n")
		header := <-got
		var names []string
		for name := range header {
			names = append(names, name)
		}
		slices.Sort(names)
		if strings.Join(names, " ") != tt.want {
			t.Errorf("%v: the server saw %v", tt.headers, names)
		}
		if tt.headers == nil && !slices.Equal(header["Anthropic-Beta"], []string{"a", "b"}) {
			t.Errorf("the server saw %v", header)
		}
		server.Close()
	}
}

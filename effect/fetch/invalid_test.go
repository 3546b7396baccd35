package fetch_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestInvalid checks that an invalid request fails before a lookup or connection.
func TestInvalid(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		edit func(*fetch.Request)
		says string
	}{
		{"method", func(r *fetch.Request) { r.Method = "get" }, "method must be one of"},
		{"head", func(r *fetch.Request) { r.Method = "HEAD" }, "method must be one of"},
		{"connect", func(r *fetch.Request) { r.Method = "CONNECT" }, "method must be one of"},
		{"no body", func(r *fetch.Request) { r.Method = "POST" }, "body is required"},
		{"long body", func(r *fetch.Request) { r.Method, r.Body = "PUT", &fetch.Body{Size: 1 << 30} }, "body must not be longer"},
		{"timeout", func(r *fetch.Request) { r.Timeout = 31 * time.Second }, "timeout must be more than 0 and at most 30s"},
		{"negative timeout", func(r *fetch.Request) { r.Timeout = -1 }, "timeout must be"},
		{"empty url", func(r *fetch.Request) { r.URL = "" }, "url must be an absolute URL"},
		{"relative", func(r *fetch.Request) { r.URL = "//example.com/" }, "url must be an absolute URL"},
		{"opaque", func(r *fetch.Request) { r.URL = "https:example.com" }, "url must be an absolute URL"},
		{"no host", func(r *fetch.Request) { r.URL = "https:///x" }, "host that must not be empty"},
		{"file", func(r *fetch.Request) { r.URL = "file:///etc/passwd" }, "url must begin with https://"},
		{"gopher", func(r *fetch.Request) { r.URL = "gopher://example.com/" }, "url must begin with https://"},
		{"user", func(r *fetch.Request) { r.URL = "https://u@example.com/" }, "must not hold a user"},
		{"password", func(r *fetch.Request) { r.URL = "https://:p@example.com/" }, "must not hold a user"},
		{"port 0", func(r *fetch.Request) { r.URL = "https://example.com:0/" }, "a port from 1 to 65535"},
		{"port high", func(r *fetch.Request) { r.URL = "https://example.com:65536/" }, "a port from 1 to 65535"},
		{"newline", func(r *fetch.Request) { r.URL = "https://example.com/\r\nX: y" }, "url must be"},
		{"long url", func(r *fetch.Request) { r.URL = "https://example.com/" + strings.Repeat("a", 9000) }, "longer than 8192"},
		{"injection", func(r *fetch.Request) { r.Headers = map[string]string{"X-A": "1\r\nX-B: hush"} }, "control character in X-A"},
		{"nul", func(r *fetch.Request) { r.Headers = map[string]string{"X-A": "hush\x00"} }, "control character in X-A"},
		{"name", func(r *fetch.Request) { r.Headers = map[string]string{"X-A: hush\r\nB": "1"} }, "an invalid name"},
		{"pseudo", func(r *fetch.Request) { r.Headers = map[string]string{":authority": "x"} }, "an invalid name"},
		{"no name", func(r *fetch.Request) { r.Headers = map[string]string{"": "x"} }, "an invalid name"},
		{"twice", func(r *fetch.Request) { r.Headers = map[string]string{"x-a": "1", "X-A": "2"} }, "has X-A twice"},
		{"sealed twice", func(r *fetch.Request) { r.Headers = map[string]string{"x-a": "pwenc:v1:x", "X-A": "pwenc:v1:y"} }, "has X-A twice"},
		{"sealed part", func(r *fetch.Request) { r.Headers = map[string]string{"x-a": "Bearer pwenc:v1:hush"} }, "seal the whole value"},
		{"long headers", func(r *fetch.Request) { r.Headers = map[string]string{"x-a": strings.Repeat("a", 40<<10)} }, "longer than 32768"},
		{"host", func(r *fetch.Request) { r.Headers = map[string]string{"host": "x"} }, "must not have Host"},
		{"connection", func(r *fetch.Request) { r.Headers = map[string]string{"CONNECTION": "x"} }, "must not have Connection"},
		{"override", func(r *fetch.Request) { r.Headers = map[string]string{"x_http_method-override": "DELETE"} }, "must not have X_http_method-Override, from which a server may take another method"},
		{"te", func(r *fetch.Request) { r.Headers = map[string]string{"te": "x"} }, "must not have Te"},
		{"transfer", func(r *fetch.Request) { r.Headers = map[string]string{"transfer-encoding": "chunked"} }, "must not have Transfer-Encoding"},
		{"length", func(r *fetch.Request) { r.Headers = map[string]string{"content-length": "1"} }, "must not have Content-Length"},
		{"upgrade", func(r *fetch.Request) { r.Headers = map[string]string{"upgrade": "h2c"} }, "must not have Upgrade"},
		{"expect", func(r *fetch.Request) { r.Headers = map[string]string{"expect": "100-continue"} }, "must not have Expect"},
		{"proxy", func(r *fetch.Request) { r.Headers = map[string]string{"proxy-authorization": "hush"} }, "must not have Proxy-Authorization"},
		{"encoding", func(r *fetch.Request) { r.Headers = map[string]string{"accept-encoding": "br"} }, "must not have Accept-Encoding"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			req := get(t, "https://example.com/")
			tc.edit(&req)
			_, err := do(t, untouched(t), req)
			want(t, err, fault.HTTPInvalid, "Invalid input: ", tc.says)
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("repeats a value: %v", err)
			}
		})
	}
}

// TestPolicy checks that a policy allows exactly its hosts, and that other hosts are not looked up.
func TestPolicy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		url, hosts string
		plain, ok  bool
	}{
		{"https://example.com/", "", false, false},
		{"https://example.com/", "example.com", false, true},
		{"https://EXAMPLE.com:443/", "Example.COM", false, true},
		{"https://example.com:8443/", "example.com", false, false},
		{"https://example.com:8443/", "example.com:8443", false, true},
		{"https://example.com:8443/", "example.com:*", false, true},
		{"https://example.com/", "example.com:8443", false, false},
		{"https://a.example.com/", "example.com", false, false},
		{"https://a.example.com/", "*.example.com", false, true},
		{"https://a.b.example.com/", "*.example.com", false, true},
		{"https://example.com/", "*.example.com", false, false},
		{"https://badexample.com/", "*.example.com", false, false},
		{"https://example.com.evil.test/", "example.com *.example.com", false, false},
		{"https://other.test/", "*", false, true},
		{"https://93.184.215.14/", "*", false, false},
		{"https://93.184.215.14/", "93.184.215.14", false, true},
		{"https://[2606:2800:021f::1]/", "[2606:2800:21f:0::1]", false, true},
		{"https://[2606:2800:21f::2]/", "[2606:2800:21f::1]", false, false},
		{"http://example.com/", "example.com", false, false},
		{"http://example.com/", "example.com", true, true},
		{"http://example.com:443/", "example.com", true, false},
		{"http://example.com:80/", "example.com", true, true},
	} {
		t.Run(tc.url+" "+tc.hosts, func(t *testing.T) {
			t.Parallel()
			reached := errors.New("reached")
			o := untouched(t)
			if tc.ok {
				o = public(reached)
			}
			req := get(t, tc.url)
			req.Policy = fetch.Policy{Hosts: hosts(t, strings.Fields(tc.hosts)...), PlainHTTP: tc.plain}
			_, err := do(t, o, req)
			if tc.ok {
				want(t, err, fault.Upstream)
			} else {
				want(t, err, fault.Forbidden, "granted")
			}
		})
	}
}

func TestParseHost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ pattern, want string }{
		{"example.com", "example.com"},
		{"EXAMPLE.com:08443", "example.com:8443"},
		{"*.Example.com:*", "*.example.com:*"},
		{"*", "*"},
		{"*:443", "*:443"},
		{"192.0.2.1:1", "192.0.2.1:1"},
		{"[2001:DB8:0::1]:9", "[2001:db8::1]:9"},
		{"_a.xn--bcher-kva.example", "_a.xn--bcher-kva.example"},
	} {
		h, err := fetch.ParseHost(tc.pattern)
		if err != nil || h.String() != tc.want {
			t.Errorf("%q became %q, %v, want %q", tc.pattern, h, err, tc.want)
		}
	}
	for _, pattern := range []string{
		"", ".", "a.", ".a", "a..b", "*.", "**", "a.*.b", "*a.b", "a:", "a:0", "a:65536", "a:+1", "a:x", "a/b", "a@b", "a b",
		"bücher.example", "1.2.3", "0x7f.1", "127.1", "1", "2001:db8::1", "[::1", "[::1%eth0]", "[1.2.3.4]", "*.1.2.3.4", "https://a",
	} {
		if h, err := fetch.ParseHost(pattern); err == nil {
			t.Errorf("%q was read as %q", pattern, h)
		}
	}
}

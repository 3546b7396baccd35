package fetch_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestMain runs all tests with proxies in the environment, where nobody listens: who asked one would get nowhere.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if err := os.Setenv(name, "http://192.0.2.1:1"); err != nil {
			panic(err)
		}
	}
	os.Exit(testkit.Main(m))
}

// names is a resolver of its own.
type names map[string][]string

func (n names) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	var all []netip.Addr
	for _, a := range n[host] {
		all = append(all, netip.MustParseAddr(a))
	}
	if len(all) == 0 {
		return nil, &net.DNSError{Err: "none", Name: host, IsNotFound: true}
	}
	return all, ctx.Err()
}

func hosts(t testing.TB, patterns ...string) []fetch.Host {
	t.Helper()
	var all []fetch.Host
	for _, p := range patterns {
		h, err := fetch.ParseHost(p)
		testkit.Must(t, err)
		all = append(all, h)
	}
	return all
}

// site is a TLS server that speaks HTTP/2, at example.com and names below it, for which its certificate is.
type site struct {
	*httptest.Server
	port string
}

func serve(t testing.TB, handler http.HandlerFunc) *site {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	t.Cleanup(s.Close)
	return &site{s, port(t, s.URL)}
}

// servePlain is serve without TLS.
func servePlain(t testing.TB, handler http.HandlerFunc) *site {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = quiet()
	s.Start()
	t.Cleanup(s.Close)
	return &site{s, port(t, s.URL)}
}

func port(t testing.TB, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	testkit.Must(t, err)
	return u.Port()
}

func (s *site) at(path string) string { return "https://example.com:" + s.port + path }

// options trust the site, and open loopback for the names that it has alone.
func (s *site) options(t testing.TB) fetch.Options {
	t.Helper()
	roots := x509.NewCertPool()
	if c := s.Certificate(); c != nil {
		roots.AddCert(c)
	}
	return fetch.Options{
		RootCAs:    roots,
		AllowHosts: hosts(t, "example.com:*", "*.example.com:*"),
		Resolver: names{
			"example.com":   {"127.0.0.1"},
			"a.example.com": {"127.0.0.1"},
			"b.example.com": {"127.0.0.1"},
			"c.example.com": {"127.0.0.1"},
		},
		Limits: fetch.Limits{Timeout: testkit.Patience, Header: testkit.Patience, Idle: testkit.Patience},
	}
}

// get is a request for a URL by somebody who may talk to any name.
func get(t testing.TB, url string) fetch.Request {
	return fetch.Request{URL: url, Policy: fetch.Policy{Hosts: hosts(t, "*:*")}}
}

func do(t testing.TB, o fetch.Options, req fetch.Request) (*fetch.Response, error) {
	t.Helper()
	return fetch.New(o).Do(t.Context(), req)
}

// want fails unless err has the id or kind and says all of what it must.
func want(t testing.TB, err error, id error, says ...string) {
	t.Helper()
	if !errors.Is(err, id) {
		t.Fatalf("error %v, want %v", err, id)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

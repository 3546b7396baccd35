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

// TestMain runs all tests with unreachable proxies in the environment, so that a request through a proxy would fail.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if err := os.Setenv(name, "http://192.0.2.1:1"); err != nil {
			panic(err)
		}
	}
	os.Exit(testkit.Main(m))
}

// names is a resolver with fixed addresses.
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

// site is an HTTPS server with HTTP/2, whose certificate is valid for example.com and names below it.
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

// options returns options that trust the certificate of the site, and open loopback only for its names.
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

// get returns a request for a URL, with a policy that allows any name.
func get(t testing.TB, url string) fetch.Request {
	return fetch.Request{URL: url, Policy: fetch.Policy{Hosts: hosts(t, "*:*")}}
}

func do(t testing.TB, o fetch.Options, req fetch.Request) (*fetch.Response, error) {
	t.Helper()
	return fetch.New(o).Do(t.Context(), req)
}

// want fails the test unless err has the id or kind, and its message has all the texts.
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

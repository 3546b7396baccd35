package mcp_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/door/mcp"
	"github.com/promptware-os/pwos/internal/testkit"
)

const token = "a-token-of-some-length"

// served runs a bridge that serves over HTTP, and returns its URL.
func served(t *testing.T, p *place, o *mcp.HTTP) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	ready := make(chan struct{})
	o.Listener, o.Token = listener, func() (string, error) {
		close(ready)
		return token, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.bridge("Memory.*").ServeHTTP(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("the server ended: %v", err)
		}
	})
	<-ready
	scheme := "http://"
	if o.Certificate != nil {
		scheme = "https://"
	}
	return scheme + listener.Addr().String() + "/mcp"
}

// certified returns a certificate for 127.0.0.1, and a transport that trusts it.
func certified(t *testing.T) (*tls.Certificate, *http.Transport) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	testkit.Must(t, err)
	cert, err := x509.ParseCertificate(der)
	testkit.Must(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, transport
}

// TestHTTPS checks that a server with a certificate accepts only TLS, requires the token, and allows only https for its own origin.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	certificate, transport := certified(t)
	url := served(t, newPlace(t), &mcp.HTTP{Certificate: certificate})
	c := sdk.NewClient(&sdk.Implementation{Name: "host", Version: "1"}, nil)
	session, err := c.Connect(testkit.Context(t), &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{transport}}}, nil)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, session.Close()) })
	(&host{t: t, session: session}).expect("Memory_Set", args{"key": "a", "value": 1}, `{"success":true}`)
	own := strings.TrimSuffix(url, "/mcp")
	for name, test := range map[string]struct {
		url, origin, auth string
		want              int
	}{
		"no token":           {url, "", "", 401},
		"a page of its own":  {url, own, "Bearer " + token, 200},
		"the page of http":   {url, strings.Replace(own, "https", "http", 1), "Bearer " + token, 403},
		"without encryption": {strings.Replace(url, "https", "http", 1), "", "Bearer " + token, 400},
	} {
		r, err := http.NewRequestWithContext(testkit.Context(t), http.MethodPost, test.url, strings.NewReader(initialize))
		testkit.Must(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for header, value := range map[string]string{"Origin": test.origin, "Authorization": test.auth} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		answer, err := transport.RoundTrip(r)
		testkit.Must(t, err)
		testkit.Must(t, answer.Body.Close())
		if answer.StatusCode != test.want {
			t.Errorf("%s: status %d, want %d", name, answer.StatusCode, test.want)
		}
	}
}

// initialize is the request that begins a session.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// bearer is a transport that adds the token to requests.
type bearer struct{ next http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return b.next.RoundTrip(r)
}

// TestHTTP checks that two hosts can be served at the same time as the same process.
func TestHTTP(t *testing.T) {
	t.Parallel()
	url := served(t, newPlace(t), &mcp.HTTP{})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	var hosts []*host
	for range 2 {
		c := sdk.NewClient(&sdk.Implementation{Name: "host", Version: "1"}, nil)
		session, err := c.Connect(testkit.Context(t), &sdk.StreamableClientTransport{
			Endpoint: url, HTTPClient: &http.Client{Transport: bearer{transport}},
		}, nil)
		testkit.Must(t, err)
		t.Cleanup(func() { testkit.Must(t, session.Close()) })
		hosts = append(hosts, &host{t: t, session: session})
	}
	hosts[0].expect("Memory_Set", args{"key": "a", "value": 1}, `{"success":true}`)
	hosts[1].expect("Memory_Get", args{"key": "a"}, "1")
}

// TestHTTPGuard checks that requests without the token, for another host name, or from a foreign page are refused.
func TestHTTPGuard(t *testing.T) {
	t.Parallel()
	url := served(t, newPlace(t), &mcp.HTTP{Hosts: []string{"box.example"}, Origins: []string{"https://app.example"}})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	const good = "Bearer " + token
	for name, test := range map[string]struct {
		method, host, origin, site, auth string
		want                             int
	}{
		"good":               {"POST", "", "", "", good, 200},
		"no token":           {"POST", "", "", "", "", 401},
		"wrong token":        {"POST", "", "", "", good + "x", 401},
		"basic":              {"POST", "", "", "", "Basic " + token, 401},
		"rebound name":       {"POST", "evil.example", "", "", good, 403},
		"rebound with port":  {"POST", "evil.example:80", "", "", good, 403},
		"allowed name":       {"POST", "box.example", "", "", good, 200},
		"localhost":          {"POST", "localhost:1", "", "", good, 200},
		"foreign page":       {"POST", "", "https://evil.example", "", good, 403},
		"foreign page, GET":  {"GET", "", "https://evil.example", "", good, 403},
		"null origin":        {"POST", "", "null", "", good, 403},
		"cross-site":         {"POST", "", "", "cross-site", good, 403},
		"allowed page":       {"POST", "", "https://app.example", "", good, 200},
		"foreign and no key": {"POST", "", "https://evil.example", "", "", 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := http.NewRequestWithContext(testkit.Context(t), test.method, url, strings.NewReader(initialize))
			testkit.Must(t, err)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for header, value := range map[string]string{"Origin": test.origin, "Sec-Fetch-Site": test.site, "Authorization": test.auth} {
				if value != "" {
					r.Header.Set(header, value)
				}
			}
			if test.host != "" {
				r.Host = test.host
			}
			answer, err := transport.RoundTrip(r)
			testkit.Must(t, err)
			testkit.Must(t, answer.Body.Close())
			if answer.StatusCode != test.want {
				t.Errorf("status %d, want %d", answer.StatusCode, test.want)
			}
		})
	}
}

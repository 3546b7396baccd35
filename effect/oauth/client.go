package oauth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
)

const (
	exchangeTime = 15 * time.Second // of one request
	maxHeader    = 32 << 10
)

// Dialer connects by the address rules of Http.Fetch; *fetch.Fetcher is one.
type Dialer interface {
	Dial(context.Context, fetch.Endpoint) (net.Conn, error)
	RootCAs() *x509.CertPool
}

// Client communicates with an MCP server and with the authorization server that it names. Close
// ends its connections.
type Client struct {
	server string
	web    *http.Client
	guard  *guard
}

// NewClient returns a client for the MCP server at an address.
func NewClient(server *url.URL, d Dialer) *Client {
	g := &guard{loopback: onLoopback(server.Hostname()), next: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			to, err := fetch.ParseEndpoint(address, 0)
			if err != nil {
				return nil, err
			}
			return d.Dial(ctx, to)
		},
		TLSClientConfig: &tls.Config{RootCAs: d.RootCAs(), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: exchangeTime, MaxResponseHeaderBytes: maxHeader, IdleConnTimeout: exchangeTime,
	}}
	return &Client{server: server.String(), guard: g, web: &http.Client{
		Transport: g, Timeout: exchangeTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the connections that are idle.
func (c *Client) Close() { c.guard.next.CloseIdleConnections() }

// guard checks the address of each request of a client.
type guard struct {
	loopback    bool // whether the MCP server is on loopback
	next        *http.Transport
	undescribed bool // a login is in progress, and the authorization server's metadata was not read yet
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := g.check(r.URL); err != nil {
		return nil, err
	}
	if r.Method != http.MethodGet && g.undescribed {
		return nil, errUndescribed
	}
	describes := strings.Contains(r.URL.Path, "/.well-known/oauth-authorization-server") || strings.Contains(r.URL.Path, "/.well-known/openid-configuration")
	g.undescribed = g.undescribed || describes // the last request for metadata decides: the MCP server may name the paths of earlier ones
	resp, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if describes && resp.StatusCode == http.StatusOK {
		g.undescribed = false
	}
	return resp, nil
}

// errUndescribed means that an authorization server has no metadata, so that no request may be sent to it.
var errUndescribed = errors.New("the authorization server does not describe itself (RFC 8414), so nothing says that it has PKCE")

// check refuses an address that must get no credential and no browser.
func (g *guard) check(u *url.URL) error {
	here := onLoopback(u.Hostname())
	if u.User == nil && (!here || g.loopback) && (u.Scheme == "https" || u.Scheme == "http" && here) {
		return nil
	}
	return fmt.Errorf("the server names %.200q, which is no https: address elsewhere", u.Redacted())
}

func onLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost"
}

package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"

	"github.com/promptware-os/pwos/schema"
)

// DialTo makes an upstream dial another address.
func (u *Upstream) DialTo(address string) {
	u.transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}
}

// Leaf returns the certificate that is shown for a host.
func (a *Authority) Leaf(host string) (*x509.Certificate, error) {
	cert, err := a.leaf(host)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(cert.Certificate[0])
}

// TLS answers for a host.
func (a *Authority) TLS(host string) *tls.Config { return a.config(host) }

// PeekHello reads a ClientHello.
func PeekHello(r io.Reader) (name string, read []byte, err error) { return peekHello(r) }

// Usage is the usage that is read of an answer in pieces.
func Usage(contentType string, pieces ...[]byte) *schema.NetUsage {
	m := newMeter(contentType)
	if m == nil {
		return nil
	}
	for _, p := range pieces {
		m.write(p)
	}
	return m.usage(nil, nil, true)
}

// Estimate is the estimated usage of an answer of a model, which is whole or breaks off.
func Estimate(contentType, model string, whole bool, body []byte) *schema.NetUsage {
	m := newMeter(contentType)
	m.write(body)
	return m.usage(Prices{"m": {Output: 15}}, &asks{model: model}, whole)
}

// Answer answers a query as for an agent that may connect to no host and whose misses are not journaled.
func (s *Server) Answer(query []byte) []byte {
	a := &agent{Server: s, names: newNames(16), over: true}
	return a.answer(query)
}

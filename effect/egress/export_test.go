package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"

	"github.com/promptware-os/pwos/effect/price"
	"github.com/promptware-os/pwos/schema"
)

// DialTo makes an upstream dial another address.
func (u *Upstream) DialTo(address string) {
	u.transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}
}

// Leaf returns the certificate of a host.
func (a *Authority) Leaf(host string) (*x509.Certificate, error) {
	cert, err := a.leaf(host)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(cert.Certificate[0])
}

// TLS returns the TLS configuration of a server for a host.
func (a *Authority) TLS(host string) *tls.Config { return a.config(host) }

// PeekHello is peekHello.
func PeekHello(r io.Reader) (name string, read []byte, err error) { return peekHello(r) }

// Usage returns the usage that a meter reads from the pieces of an answer.
func Usage(contentType string, pieces ...[]byte) *schema.NetUsage {
	m := newMeter(contentType)
	if m == nil {
		return nil
	}
	for _, p := range pieces {
		m.write(p)
	}
	return m.usage(price.Table{"*": {}}, nil, true)
}

// Estimate returns the usage of an answer of a model that is complete or not.
func Estimate(contentType, model string, whole bool, body []byte) *schema.NetUsage {
	m := newMeter(contentType)
	m.write(body)
	return m.usage(price.Table{"m": {Output: 15}}, &asks{model: model}, whole)
}

// Answer answers a query of an agent that may connect to no host and whose refused names are not journaled.
func (s *Server) Answer(query []byte) []byte {
	a := &agent{Server: s, names: newNames(16), over: true}
	return a.answer(query)
}

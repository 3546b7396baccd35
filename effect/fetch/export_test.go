package fetch

import (
	"context"
	"net"
)

// WithDial returns o with dial in place of a net.Dialer.
func WithDial(o Options, dial func(ctx context.Context, network, address string) (net.Conn, error)) Options {
	o.dial = dial
	return o
}

// Recheck checks an address as before a socket connects to it.
func Recheck(o Options, address string) error {
	t, _ := parseTarget("https://example.test/", nil)
	d := &destination{target: t, Fetcher: New(o)}
	return d.recheck(address)
}

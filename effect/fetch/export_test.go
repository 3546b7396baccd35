package fetch

import (
	"context"
	"net"
)

// WithDial returns o with dial in the place of the system's way to connect.
func WithDial(o Options, dial func(ctx context.Context, network, address string) (net.Conn, error)) Options {
	o.dial = dial
	return o
}

// Recheck judges the address of a socket that is about to connect.
func Recheck(o Options, address string) error {
	t, _ := parseTarget("https://example.test/", nil)
	d := &destination{target: t, Fetcher: New(o)}
	return d.recheck(address)
}

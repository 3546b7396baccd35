package client

import (
	"context"
	"fmt"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/transport/tlssock"
)

// address is the route to a kernel on another machine: tls://HOST:PORT. No kernel is ever started there.
type address string

// String implements route.
func (a address) String() string { return string(a) }

func (a address) name() (string, error) {
	name, _, err := access.TLSName(string(a))
	return name, err
}

func (a address) dial(ctx context.Context) (*conn, error) {
	session, channel, err := tlssock.Dial(ctx, string(a))
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return newConn(session, 0, channel), nil
}

// remote reports whether the kernel is on another machine, whose files are not those that it names.
func (c *Client) remote() bool {
	_, remote := c.conn.channel.(access.TLS)
	return remote
}

// Address returns where the kernel was reached: the path of its socket, or tls://HOST:PORT.
func (c *Client) Address() string { return c.address }

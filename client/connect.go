package client

import (
	"context"
	"errors"
	"net"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// maxAnswer bounds a line from the kernel, in bytes. The kernel keeps to the limit of its configuration, which a client does not
// know; this one only ends a reader's growth when the other end has lost its mind.
const maxAnswer = 256 << 20

// connect makes one connection and takes it through the prologue.
func (d *dialer) connect(ctx context.Context) (*Client, error) {
	nc, err := unixsock.Dial(ctx, d.places.KernelSocket)
	if err != nil {
		return nil, err
	}
	c, err := greet(ctx, nc)
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	c.places = d.places
	return c, nil
}

func greet(ctx context.Context, nc *net.UnixConn) (*Client, error) {
	peer, err := unixsock.PeerOf(nc)
	if err != nil {
		return nil, err
	}
	conn, err := unixsock.NewConn(nc, schema.OsMessage, maxAnswer)
	if err != nil {
		return nil, err
	}
	if err := unixsock.ClientPrologue(ctx, conn, unixsock.AnswerOpen); err != nil {
		return nil, err
	}
	return newClient(conn, peer.PID), nil
}

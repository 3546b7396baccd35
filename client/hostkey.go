package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// errSeen ends a prologue of which no more was wanted than its first frame.
var errSeen = errors.New("seen")

// SocketName returns the name under which known kernels are remembered of the kernel that o names.
func (o Options) SocketName() (string, error) {
	name, err := access.SocketName(o.places().KernelSocket)
	if err != nil {
		return "", fmt.Errorf("name socket: %w", err)
	}
	return name, nil
}

// HostKey asks the running kernel for its host key, which it proves to hold, without logging in: whether the key is the one
// that is known is not asked. It is zero for a kernel in open mode. The error is a fault.DaemonUnreachable where none runs.
func HostKey(ctx context.Context, o Options) (key access.PublicKey, err error) {
	socket := o.places().KernelSocket
	ctx, cancel := context.WithTimeoutCause(ctx, o.patience(), noAnswer(o.patience()))
	defer cancel()
	nc, err := unixsock.Dial(ctx, socket)
	if err != nil {
		if absent(err) {
			err = errNotRunning
		}
		return key, unreachable(socket, err)
	}
	defer func() { err = errors.Join(err, nc.Close()) }()
	if _, err := unixsock.PeerOf(nc); err != nil {
		return key, unreachable(socket, err)
	}
	conn, err := unixsock.NewConn(nc, schema.OsMessage, maxAnswer)
	if err != nil {
		return key, err
	}
	name, err := o.SocketName()
	if err != nil {
		return key, err
	}
	err = access.ClientPrologue(ctx, conn, func(offer []byte, issued time.Time) (_ []byte, err error) {
		l := access.Login{Socket: name, PID: os.Getpid(), UID: os.Geteuid(), Now: time.Now}
		if key, err = l.Host(offer, issued); err != nil {
			return nil, loginFailed(socket, nil, nil, err)
		}
		return nil, errSeen
	})
	if errors.Is(err, errSeen) {
		err = nil
	}
	return key, err
}

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// Options say how a kernel is on the bus.
type Options struct {
	Name      string          // of this kernel
	Servers   string          // addresses of the bus, with commas between
	Authority string          // file of certificate authorities for a bus with TLS; "": the system's
	Key       *access.HostKey // which is also the user of the bus
	Log       *slog.Logger
}

// Conn is a connection to the bus, and Streams what it keeps: for packages that only pass them on.
type (
	Conn    = nats.Conn
	Streams = jetstream.JetStream
)

// reconnectWait is how long an attempt to reach the bus waits behind the last one.
const reconnectWait = 250 * time.Millisecond

// pingEvery is how often a connection asks whether its node still answers.
const pingEvery = 2 * time.Second

// User is the name of a key's holder on the bus: the same key, as NATS writes it.
func User(key access.PublicKey) (string, error) {
	raw := key.Ed25519()
	if raw == nil {
		return "", fmt.Errorf("name user of the bus: the key %s is not of type ssh-ed25519", key.Fingerprint())
	}
	user, err := nkeys.Encode(nkeys.PrefixByteUser, raw)
	if err != nil {
		return "", fmt.Errorf("name user of the bus: %w", err)
	}
	return string(user), nil
}

// Connect joins the bus, and does not wait until that is reached: the connection tries again without end. The caller closes it.
func Connect(o Options) (*nats.Conn, error) {
	user, err := User(o.Key.Key())
	if err != nil {
		return nil, err
	}
	options := []nats.Option{
		nats.Name("pwos " + o.Name),
		nats.Nkey(user, o.Key.Sign),
		nats.CustomInboxPrefix(InboxPrefix(o.Name)),
		nats.IgnoreDiscoveredServers(), // those of the configuration are the ones that this host can reach
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2), // a node that hangs is left for another
		nats.ReconnectJitter(reconnectWait/2, reconnectWait/2),
		nats.IgnoreAuthErrorAbort(), // a key may be added to the members of the bus later
		nats.NoCallbacksAfterClientClose(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.Log.Warn("bus", "error", err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.Log.Warn("disconnected from the bus", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) { o.Log.Info("connected to the bus", "server", c.ConnectedUrlRedacted()) }),
	}
	if o.Authority != "" {
		options = append(options, nats.RootCAs(o.Authority))
	}
	conn, err := nats.Connect(o.Servers, options...)
	if err != nil {
		return nil, fault.ClusterBus.New("the bus at %s cannot be used: %v", o.Servers, err)
	}
	return conn, nil
}

// Join is Connect for a caller that also uses the streams.
func Join(o Options) (*nats.Conn, jetstream.JetStream, error) {
	conn, err := Connect(o)
	if err != nil {
		return nil, nil, err
	}
	stream, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("use the bus: %w", err)
	}
	return conn, stream, nil
}

// Dial is Connect for a command: it waits until the bus is reached, or returns an error when ctx ends.
func Dial(ctx context.Context, o Options) (*nats.Conn, jetstream.JetStream, error) {
	conn, stream, err := Join(o)
	if err != nil {
		return nil, nil, err
	}
	for changed := conn.StatusChanged(nats.CONNECTED); !conn.IsConnected(); {
		select {
		case <-changed:
		case <-ctx.Done():
			last := conn.LastError()
			conn.Close()
			if last == nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				last = errors.New("no server has answered there")
			}
			last = whyAway(cmp.Or(last, context.Cause(ctx)))
			return nil, nil, fault.ClusterBus.New("the bus at %s cannot be reached: %v", o.Servers, last)
		}
	}
	return conn, stream, nil
}

// whyAway returns the last error of a connection that does not reach the bus, with what to do where NATS does not say that.
func whyAway(last error) error {
	if errors.Is(last, nats.ErrAuthorization) {
		return errors.New("the bus does not know the key of this kernel, or its line there has expired: add the line that \"pwos cluster key\" prints to its members, and reload it with SIGHUP")
	}
	return last
}

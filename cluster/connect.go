package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
)

// Options configure a connection to the bus.
type Options struct {
	Name      string          // of this kernel
	Servers   string          // addresses of the bus, separated by commas
	Authority string          // file of certificate authorities for a bus with TLS; "": those of the system
	Key       *access.HostKey // its public key names the user of the bus
	Log       *slog.Logger
}

// Conn is a connection to the bus, and Streams gives access to its streams, for packages that only pass them on.
type (
	Conn    = nats.Conn
	Streams = jetstream.JetStream
)

// reconnectWait is the time between two attempts to reach the bus.
const reconnectWait = 250 * time.Millisecond

// pingEvery is how often a connection asks whether its node still answers.
const pingEvery = 2 * time.Second

// User returns the name of a key's user on the bus: the public key in the encoding of NATS. It fails for a key that is not
// ssh-ed25519.
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

// nonce is the form of what a node has signed. A request or a checkpoint that the host key signs has spaces and newlines.
var nonce = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
})

// signNonce proves to a node of the bus that this kernel has its key. It signs nothing but a nonce: who runs the bus could have this
// kernel's requests and checkpoints signed.
func signNonce(key *access.HostKey, text []byte) ([]byte, error) {
	if !nonce().Match(text) {
		return nil, fmt.Errorf("sign nonce of the bus: %q is no nonce", fault.Clip(string(text)))
	}
	return key.Sign(text)
}

// Connect joins the bus. It does not wait until the bus is reached: the connection is retried until the caller closes it.
func Connect(o Options) (*nats.Conn, error) {
	user, err := User(o.Key.Key())
	if err != nil {
		return nil, err
	}
	options := []nats.Option{
		nats.Name("pwos " + o.Name),
		nats.Nkey(user, func(text []byte) ([]byte, error) { return signNonce(o.Key, text) }),
		nats.CustomInboxPrefix(InboxPrefix(o.Name)),
		nats.IgnoreDiscoveredServers(), // this host can reach those of the configuration
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2), // to leave a node that hangs
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

// Join is Connect, and also returns access to the streams.
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
			last = cmp.Or(last, context.Cause(ctx))
			return nil, nil, fault.ClusterBus.New("the bus at %s cannot be reached: %v", o.Servers, unreached(last))
		}
	}
	return conn, stream, nil
}

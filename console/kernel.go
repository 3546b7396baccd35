package console

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// patience is the time limit of a call. It is longer than the longest search takes.
const patience = 2 * time.Minute

// kernel has the server's connections for one kernel. A connection runs one call at a time, so slow calls have their own
// connection.
type kernel struct {
	dial  func(context.Context) (*client.Client, error)
	name  string // name in the cluster; empty: the kernel that dial connects to
	as    string // agent id of the own kernel's process on this kernel
	quick lane
	slow  lane

	mu    sync.Mutex
	known view.Names // cached names of another kernel's processes
	asked int64      // seq of the last Audit.Log call in the record of the other kernel
}

// lane is a connection that opens on the first call, and again after it was lost.
type lane struct {
	mu     sync.Mutex
	client *client.Client // nil: not connected
}

func (k *kernel) close() {
	for _, l := range []*lane{&k.quick, &k.slow} {
		l.mu.Lock()
		if l.client != nil {
			_ = l.client.Close() // no call is in flight
			l.client = nil
		}
		l.mu.Unlock()
	}
}

// get returns the connection of a lane, and opens it if necessary.
func (k *kernel) get(ctx context.Context, l *lane) (*client.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client != nil {
		return l.client, nil
	}
	c, err := k.dial(ctx)
	if err == nil {
		l.client = c
	}
	return c, err
}

// forget closes a connection that has failed, unless it was already replaced.
func (l *lane) forget(c *client.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == c {
		l.client = nil
		_ = c.Close() // it has failed already
	}
}

// do sends one message and returns the reply. It sends a query a second time if the connection was lost: the kernel may have restarted.
func (k *kernel) do(ctx context.Context, l *lane, m schema.Message) (schema.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for again := m.Kind == schema.KindQuery; ; again = false {
		c, err := k.get(ctx, l)
		if err != nil {
			return schema.Message{}, err
		}
		answer, err := k.send(ctx, c, m)
		lost := err != nil && client.Answered(err) == nil && (errors.Is(err, fault.DaemonHungUp) || errors.Is(err, client.ErrClosed))
		if !lost {
			return answer, err
		}
		l.forget(c)
		if !again {
			return answer, err
		}
	}
}

// send sends one message on a connection: to the own kernel, or through it to another kernel.
func (k *kernel) send(ctx context.Context, c *client.Client, m schema.Message) (schema.Message, error) {
	if k.name == "" {
		return c.Do(ctx, m)
	}
	return c.Ask(ctx, k.name, m)
}

// ask calls a syscall on a lane, and returns its decoded output.
func ask[In, Out any](ctx context.Context, k *kernel, l *lane, row schema.Callable[In, Out], in *In) (*Out, error) {
	answer, err := request(ctx, k, l, row, in)
	if err != nil {
		return nil, err
	}
	return row.Decode(answer.Data)
}

// request calls a syscall on a lane, and returns the whole reply.
func request[In, Out any](ctx context.Context, k *kernel, l *lane, row schema.Callable[In, Out], in *In) (schema.Message, error) {
	data, err := row.Encode(in)
	if err != nil {
		return schema.Message{}, err
	}
	return k.do(ctx, l, schema.Message{Kind: row.Row().Kind, Type: row.Row().Type, Data: data})
}

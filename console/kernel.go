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

// patience bounds a call: longer than the longest search takes, shorter than a person waits.
const patience = 2 * time.Minute

// kernel is the server's connections for one kernel. Calls of one connection run one after the other, so slow ones have
// a connection of their own.
type kernel struct {
	dial  func(context.Context) (*client.Client, error)
	name  string // it is asked through the kernel that dial connects to; empty: it is that one
	as    string // process that it may take queries of the own kernel for
	quick lane
	slow  lane

	mu    sync.Mutex
	known view.Names // names of processes of another kernel
	asked int64      // entry of the last question for its log, there
}

// lane is a connection that is opened when it is needed, and again after it was closed.
type lane struct {
	mu     sync.Mutex
	client *client.Client // nil: there is none
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

// get returns the connection of a lane.
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

// forget drops a connection that has failed, unless it was replaced meanwhile.
func (l *lane) forget(c *client.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == c {
		l.client = nil
		_ = c.Close() // it has failed already
	}
}

// do sends one message. A query on a closed connection is sent again once: the kernel may have restarted.
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

// send sends one message on a connection.
func (k *kernel) send(ctx context.Context, c *client.Client, m schema.Message) (schema.Message, error) {
	if k.name == "" {
		return c.Do(ctx, m)
	}
	return c.Ask(ctx, k.name, m)
}

// ask calls a syscall of the table on a lane.
func ask[In, Out any](ctx context.Context, k *kernel, l *lane, row schema.Callable[In, Out], in *In) (*Out, error) {
	answer, err := request(ctx, k, l, row, in)
	if err != nil {
		return nil, err
	}
	return row.Decode(answer.Data)
}

// request is ask with the whole answer.
func request[In, Out any](ctx context.Context, k *kernel, l *lane, row schema.Callable[In, Out], in *In) (schema.Message, error) {
	data, err := row.Encode(in)
	if err != nil {
		return schema.Message{}, err
	}
	return k.do(ctx, l, schema.Message{Kind: row.Row().Kind, Type: row.Row().Type, Data: data})
}

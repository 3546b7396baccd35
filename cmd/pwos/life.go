package main

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// life signals events of processes, which it receives on its own connection. On a signal, its owner reads the process's
// descriptor: one journal entry per event, instead of one per poll.
type life struct {
	news chan struct{} // has room for one signal

	client  *client.Client
	in      *io.PipeWriter
	cancel  context.CancelFunc
	stream  sync.WaitGroup
	refused atomic.Bool
	half    []byte // an incomplete line of the kernel's output

	mu        sync.Mutex
	restarted []schema.Descriptor // descriptors from restart events, until restarts returns them
}

// followLife subscribes to the events of a process, or of all if pid is 0. The first signal means that the subscription is
// active: no later event is missed.
func followLife(ctx context.Context, options client.Options, pid int64) (*life, error) {
	l, err := dialLife(ctx, options)
	if err == nil {
		l.follow(ctx, pid)
	}
	return l, err
}

// dialLife connects, for follow.
func dialLife(ctx context.Context, options client.Options) (*life, error) {
	c, err := client.Dial(ctx, options)
	if err != nil {
		return nil, err
	}
	return &life{news: make(chan struct{}, 1), client: c, cancel: func() {}}, nil
}

// follow subscribes, once.
func (l *life) follow(ctx context.Context, pid int64) {
	in, frames := io.Pipe()
	c := l.client
	l.in = frames
	ctx, l.cancel = context.WithCancel(ctx)
	l.stream.Go(func() {
		if _, err := c.Stream(ctx, letGo{in}, l); err != nil && ctx.Err() == nil {
			l.refused.Store(true) // the kernel has closed the connection; the next call returns the error
			l.tell()
		}
		_ = in.Close() // always nil
	})
	data := schema.Value("{}")
	if pid != 0 {
		data = view.Object(nil).Integer("pid", pid).Close()
	}
	frame := schema.AppendMessage(nil, &schema.Message{
		Kind: schema.KindQuery, Type: "Process.Subscribe", Data: data,
		Meta: schema.Metadata{Present: true, ID: schema.NewStamper().NewID(), Timestamp: time.Now().UnixMilli()},
	})
	_, _ = frames.Write(frame) // fails if the stream has ended, which was signalled
}

// letGo is the input of a stream. It lets the stream stop reading once the kernel has closed the connection.
type letGo struct{ *io.PipeReader }

// SetReadDeadline ends reading at once: a stream sets only deadlines that have passed.
func (l letGo) SetReadDeadline(time.Time) error { return l.Close() }

// Write accepts the kernel's output, split at any byte.
func (l *life) Write(p []byte) (int, error) {
	l.half = append(l.half, p...)
	for {
		line, rest, whole := bytes.Cut(l.half, []byte("\n"))
		if !whole {
			break
		}
		l.hear(line)
		l.half = rest
	}
	l.tell()
	return len(p), nil
}

// hear handles one line. After an error the processes are polled.
func (l *life) hear(line []byte) {
	m, failure := schema.Decode(bytes.Clone(line), schema.OsMessage)
	if failure != nil || m.Kind == schema.KindError {
		l.refused.Store(true)
		return
	}
	if m.Type != schema.ProcessRestarted {
		return
	}
	if d, ok := view.As[schema.Descriptor](m.Data); ok {
		l.mu.Lock()
		l.restarted = append(l.restarted, d)
		l.mu.Unlock()
	}
}

// restarts returns and removes the descriptors from restart events. Their Exit is the end before the restart.
func (l *life) restarts() []schema.Descriptor {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.restarted
	l.restarted = nil
	return taken
}

func (l *life) tell() {
	select {
	case l.news <- struct{}{}:
	default: // a signal is pending
	}
}

// Bounds of the poll interval of a process without events.
const (
	shortLook = 5 * time.Millisecond
	longLook  = 250 * time.Millisecond
)

// pause returns the maximum wait for an event. Without a subscription it is the next poll interval, which grows from last.
func (l *life) pause(last time.Duration) time.Duration {
	if !l.refused.Load() {
		return time.Minute
	}
	return min(max(last, shortLook)*3/2, longLook)
}

// Close ends the subscription.
func (l *life) Close() error {
	l.cancel()
	if l.in != nil {
		_ = l.in.Close() // always nil
	}
	l.stream.Wait()
	return l.client.Close()
}

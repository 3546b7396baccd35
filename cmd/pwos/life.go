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
)

// life tells when something happens to processes, over a connection of its own. What it was, the process's descriptor says:
// asking after each piece of news is an entry of the journal for each, not one for each look.
type life struct {
	news chan struct{} // has one in it when there is news since the last was taken

	client  *client.Client
	in      *io.PipeWriter
	cancel  context.CancelFunc
	stream  sync.WaitGroup
	refused atomic.Bool
	half    []byte // a line that has not come to its end yet

	mu        sync.Mutex
	restarted []schema.Descriptor // processes whose program runs again, as they were then, not yet taken
}

// followLife follows a process, or all where pid is 0. The first news is that it does; what happens after that is not
// missed.
func followLife(ctx context.Context, options client.Options, pid int64) (*life, error) {
	c, err := client.Dial(ctx, options)
	if err != nil {
		return nil, err
	}
	in, frames := io.Pipe()
	l := &life{news: make(chan struct{}, 1), client: c, in: frames}
	ctx, l.cancel = context.WithCancel(ctx)
	l.stream.Go(func() {
		if _, err := c.Stream(ctx, letGo{in}, l); err != nil && ctx.Err() == nil {
			l.refused.Store(true) // the kernel is gone, as the next look finds out
			l.tell()
		}
		_ = in.Close() // always nil
	})
	data := schema.Value("{}")
	if pid != 0 {
		data = object(nil).integer("pid", pid).close()
	}
	frame := schema.AppendMessage(nil, &schema.Message{
		Kind: schema.KindQuery, Type: "Process.Subscribe", Data: data,
		Meta: schema.Metadata{Present: true, ID: schema.NewStamper().NewID(), Timestamp: time.Now().UnixMilli()},
	})
	_, _ = frames.Write(frame) // fails where the stream has ended, which has told so
	return l, nil
}

// letGo is input that a stream can let go of when the kernel has closed the connection: else it would wait for more of it, and
// nobody would be told.
type letGo struct{ *io.PipeReader }

// SetReadDeadline ends reading at once; a stream sets no deadline but one that is past.
func (l letGo) SetReadDeadline(time.Time) error { return l.Close() }

// Write takes what the kernel says, in pieces that may end anywhere.
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

// hear takes one line. A kernel that does not do this is one to be asked again and again.
func (l *life) hear(line []byte) {
	m, failure := schema.Decode(bytes.Clone(line), schema.OsMessage)
	if failure != nil || m.Kind == schema.KindError {
		l.refused.Store(true)
		return
	}
	if m.Type != schema.ProcessRestarted {
		return
	}
	if d, ok := valueOf[schema.Descriptor](m.Data); ok {
		l.mu.Lock()
		l.restarted = append(l.restarted, d)
		l.mu.Unlock()
	}
}

// restarts takes those who were started again since the last time, as they were then: Exit is the end that it followed.
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
	default: // there is some already
	}
}

// Bounds of the pause between two looks at a process whose news does not come by itself.
const (
	shortLook = 5 * time.Millisecond
	longLook  = 250 * time.Millisecond
)

// pause is how long to wait for news before looking all the same, when the last pause was as given.
func (l *life) pause(last time.Duration) time.Duration {
	if !l.refused.Load() {
		return time.Minute
	}
	return min(max(last, shortLook)*3/2, longLook)
}

// Close ends following.
func (l *life) Close() error {
	l.cancel()
	_ = l.in.Close() // always nil
	l.stream.Wait()
	return l.client.Close()
}

package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// link is the connection to the kernel that acts as the process. It reconnects after the connection was
// lost.
type link struct {
	options *Options

	mu      sync.Mutex
	kernel  *client.Client // nil: no connection
	pid     int64
	away    error         // the reason, if there is no connection
	changed chan struct{} // closed when the fields above change
	ended   error         // the process has ended: no new connection is possible
}

// Pauses between attempts to connect, and how long a call waits for a connection.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
	callWait   = 3 * time.Second
)

// connect makes a connection that acts as the process.
func (l *link) connect(ctx context.Context, dial Dial) (*client.Client, int64, error) {
	c, err := dial(ctx)
	if err != nil {
		return nil, 0, err
	}
	pid, err := l.options.Agent.Become(ctx, c, l.options.Note)
	if err != nil {
		return nil, 0, errors.Join(err, c.Close())
	}
	return c, pid, nil
}

// run keeps the link connected until ctx ends, and calls listed when the list of what the process may call
// changes. It does not reconnect after the process has ended.
func (l *link) run(ctx context.Context, listed func(context.Context, *schema.ListOutput)) error {
	c, pid, err := l.connect(ctx, l.options.Dial)
	if err != nil {
		return err
	}
	for {
		l.set(c, pid, nil)
		err := follow(ctx, c, listed)
		if ctx.Err() != nil {
			return errors.Join(c.Close(), context.Cause(ctx))
		}
		if errors.Is(err, fault.Ended) {
			l.end(err)
			<-ctx.Done()
			return errors.Join(c.Close(), context.Cause(ctx))
		}
		l.set(nil, 0, err)
		l.options.Note("the kernel is unreachable: %v", errors.Join(err, c.Close()))
		if c, pid, err = l.again(ctx); err != nil {
			return err
		}
		l.options.Note("the kernel is back: pid %d", pid)
	}
}

// again retries the connection until it succeeds or ctx ends. It does not start a kernel: the operator may have stopped it on
// purpose.
func (l *link) again(ctx context.Context) (*client.Client, int64, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		select {
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		case <-time.After(pause):
		}
		c, pid, err := l.connect(ctx, l.options.Redial)
		if err == nil {
			return c, pid, nil
		}
		if ctx.Err() == nil {
			l.set(nil, 0, err)
		}
	}
}

// settling is the time for which changes are collected before they are reported together.
const settling = 100 * time.Millisecond

// follow subscribes to the list of what the process may call, and passes each list to listed. It returns why the subscription ended.
func follow(ctx context.Context, c *client.Client, listed func(context.Context, *schema.ListOutput)) error {
	ctx, cancel := context.WithCancel(ctx)
	latest := make(chan *schema.ListOutput, 1)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case list := <-latest:
				listed(ctx, list)
			case <-ctx.Done():
				return
			}
			select {
			case <-time.After(settling):
			case <-ctx.Done():
				return
			}
		}
	})
	defer work.Wait()
	defer cancel()
	m := schema.Message{Kind: schema.KindQuery, Type: schema.SyscallList.Type, Data: []byte(`{"follow":true}`)}
	return c.Subscribe(ctx, m, func(event schema.Message) error {
		if event.Type != schema.SyscallListed {
			return nil
		}
		list, err := schema.SyscallList.Decode(event.Data)
		if err != nil {
			return fmt.Errorf("read %s: %w", event.Type, err)
		}
		select {
		case <-latest: // drop an older list that was not read
		default:
		}
		latest <- list
		return nil
	})
}

func (l *link) set(c *client.Client, pid int64, away error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kernel, l.away = c, away
	if c != nil {
		l.pid = pid
	}
	l.wake()
}

// who returns the PID of the current or last connection.
func (l *link) who() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pid
}

func (l *link) end(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = why
	l.wake()
}

func (l *link) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// client returns the connection. If there is none, it waits up to callWait for one, and then returns an error with the reason.
func (l *link) client(ctx context.Context) (*client.Client, error) {
	late := time.NewTimer(callWait)
	defer late.Stop()
	for {
		l.mu.Lock()
		c, away, ended, changed := l.kernel, l.away, l.ended, l.changed
		l.mu.Unlock()
		switch {
		case ended != nil:
			return nil, fault.ProcessEnded.New("the process of this server has ended").WithFix("restart this MCP server: it begins a new one")
		case c != nil:
			return c, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-late.C:
			return nil, fault.DaemonUnreachable.New("the kernel is unreachable, and the call was not made: %v", away).
				WithFix(`start it with "pwosd" or any call of pwos, and call again: this server finds it by itself`)
		}
	}
}

// do makes one call as the process.
func (l *link) do(ctx context.Context, kind schema.Kind, typ string, data []byte) (schema.Message, error) {
	return l.doReporting(ctx, kind, typ, data, nil)
}

// doReporting makes one call as the process, and calls report with the progress of the call; report may be nil.
func (l *link) doReporting(ctx context.Context, kind schema.Kind, typ string, data []byte, report func(*schema.ProgressedEvent)) (schema.Message, error) {
	c, err := l.client(ctx)
	if err != nil {
		return schema.Message{}, err
	}
	answer, err := c.DoReporting(ctx, schema.Message{Kind: kind, Type: typ, Data: data}, report)
	if errors.Is(err, fault.DaemonHungUp) || errors.Is(err, client.ErrClosed) {
		return answer, fault.DaemonHungUp.New("the kernel ended before it answered %s, which may have been done or not", typ).
			WithFix("check the result before you repeat the call").Wrap(err)
	}
	return answer, err
}

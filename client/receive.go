package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// pendingCall is a message without an answer yet. done is closed when answer or err is set.
type pendingCall struct {
	id       string
	progress chan *schema.ProgressedEvent // the latest unread event; nil: no events are wanted
	done     chan struct{}
	answer   schema.Message
	err      error
}

func (k *pendingCall) outcome() (schema.Message, error) {
	if k.err != nil {
		return schema.Message{}, k.err
	}
	if k.answer.Kind == schema.KindError {
		return k.answer, answerOf(&k.answer)
	}
	return k.answer, nil
}

// receiveAll passes answers to their calls and events to the subscription until the connection ends.
func (c *Client) receiveAll() {
	for {
		line, err := c.conn.Next()
		if err != nil {
			c.end(lost(err))
			return
		}
		m, failure := schema.Decode(bytes.Clone(line), schema.OsMessage)
		if failure != nil {
			c.end(fmt.Errorf("read answer: %w", failure))
			return
		}
		switch m.Kind {
		case schema.KindReply, schema.KindError:
			c.resolve(m)
		case schema.KindEvent:
			if m.Type == schema.SyscallProgressed {
				c.progressed(m)
			} else {
				c.deliver(m)
			}
		}
	}
}

// progressed passes a Syscall.Progressed to its call, unless that has ended.
func (c *Client) progressed(m schema.Message) {
	in, failure := schema.TypeOf[schema.ProgressedEvent]().Decode(m.Data)
	if failure != nil {
		return // from a newer kernel
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.pending {
		if k.id != m.Meta.Causation || k.progress == nil {
			continue
		}
		select {
		case <-k.progress:
		default:
		}
		k.progress <- in.(*schema.ProgressedEvent)
	}
}

const hungUp = "the kernel closed the connection"

// lost returns the error for a connection that ended with err.
func lost(err error) error {
	if errors.Is(err, io.EOF) {
		return fault.DaemonHungUp.New(hungUp)
	}
	return fault.DaemonHungUp.New("%s: %v", hungUp, err).Wrap(err)
}

// resolve passes m to the call that it answers. An m without a causation answers the oldest call: the kernel could not
// read its id, and answers come in the order of their requests (PROTOCOL 2). The answer to a cancelled call is dropped.
func (c *Client) resolve(m schema.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range c.pending {
		if m.Meta.Causation == "" || m.Meta.Causation == k.id {
			c.pending = append(c.pending[:i], c.pending[i+1:]...)
			k.answer = m
			close(k.done)
			return
		}
	}
	if m.Kind == schema.KindError {
		c.failure = answerOf(&m)
	}
}

// subscription receives events.
type subscription struct {
	events chan schema.Message
	over   chan struct{} // closed when the subscription has ended
}

// Subscribe makes a call after which the kernel pushes events, and calls each for every event, one at a time. Until
// each returns, further events stay in the kernel. Subscribe returns the first error of each, the error with which the
// kernel refuses or ends the subscription, the cause of ctx's end, or the error of the connection. A Client has at most
// one subscription, and must be closed after it.
func (c *Client) Subscribe(ctx context.Context, m schema.Message, each func(schema.Message) error) error {
	return c.SubscribeTo(ctx, m, func(schema.Message) error { return nil }, each)
}

// SubscribeTo does what Subscribe does, and calls answered with the call's answer before the first event. An error of
// answered ends it too.
func (c *Client) SubscribeTo(ctx context.Context, m schema.Message, answered, each func(schema.Message) error) error {
	h := &subscription{events: make(chan schema.Message), over: make(chan struct{})}
	defer close(h.over)
	c.mu.Lock()
	busy := c.subscription != nil
	if !busy {
		c.subscription = h
	}
	c.mu.Unlock()
	if busy {
		return fmt.Errorf("subscribe: %w", ErrBusy)
	}
	answer, err := c.Do(ctx, m)
	if err == nil {
		err = answered(answer)
	}
	if err != nil {
		return err
	}
	row, _ := schema.Lookup(m.Type)
	for {
		select {
		case e := <-h.events:
			if strings.HasSuffix(e.Type, ".Unsubscribed") {
				return answerOf(&e)
			}
			if row != nil {
				e.Data = schema.Resolve(row.Output(), e.Data, []byte(e.Meta.Refs), c.readBlob)
			}
			if err := each(e); err != nil {
				return err
			}
		case <-c.quit:
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.over
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// deliver passes an event to the subscription, and blocks until that receives it.
func (c *Client) deliver(m schema.Message) {
	c.mu.Lock()
	h := c.subscription
	c.mu.Unlock()
	if h == nil {
		return
	}
	select {
	case h.events <- m:
	case <-h.over:
	}
}

// follow replaces references in an answer by the content of their files (PROTOCOL 5): parts that did not fit a line,
// and members that the syscall declares as text. It leaves a reference that cannot be read unchanged.
func (c *Client) follow(m *schema.Message) {
	if m.Kind != schema.KindReply {
		return
	}
	var form *schema.Type // nil: a registered syscall's
	if row, ok := schema.Lookup(m.Type); ok {
		form = row.Output()
	}
	m.Data = schema.Resolve(form, m.Data, []byte(m.Meta.Refs), c.readBlob)
	m.Meta.Refs = ""
}

// errNoBlob means that a reference does not name a regular file.
var errNoBlob = errors.New("reference to no regular file")

// readBlob reads the file that a reference names. Of a kernel on another machine it reads none: the name is not of this one.
func (c *Client) readBlob(p schema.BlobPointer) (content []byte, err error) {
	if p.Scheme != "file" || c.remote() {
		return nil, errNoBlob
	}
	f, err := os.Open(p.Path)
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errNoBlob
	}
	return io.ReadAll(f)
}

// PutBlob writes a file into the blob directory of a kernel on this machine, so that a call can refer to it. remove
// removes the file; without that the kernel removes it after an hour.
func (c *Client) PutBlob(content []byte) (at schema.BlobPointer, remove func() error, err error) {
	if c.remote() {
		return at, nil, fmt.Errorf("write blob: the kernel at %s is on another machine, and cannot read files of this one", c.address)
	}
	f, err := os.CreateTemp(c.places.Blobs, "client-")
	if err != nil {
		return at, nil, fmt.Errorf("write blob: %w", err)
	}
	remove = func() error { return os.Remove(f.Name()) }
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return at, nil, fmt.Errorf("write blob: %w", errors.Join(err, remove()))
	}
	return schema.BlobPointer{Scheme: "file", Path: f.Name()}, remove, nil
}

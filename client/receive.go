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

// pendingCall is a message that waits for its answer. done is closed when answer or err is set.
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

// receiveAll distributes answers until the connection ends.
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
				c.hear(m)
			}
		}
	}
}

// progressed passes m to its call, unless that has ended.
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

// lost interprets the end of the connection.
func lost(err error) error {
	if errors.Is(err, io.EOF) {
		return fault.DaemonHungUp.New(hungUp)
	}
	return fault.DaemonHungUp.New("%s: %v", hungUp, err).Wrap(err)
}

// resolve passes m to the call that it answers. If m does not say which, the kernel could not read the id: it is the
// oldest one, since answers come in the order of their requests (PROTOCOL 2). The answer to a cancelled call is
// dropped.
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

// heard receives the events of a subscription.
type heard struct {
	events chan schema.Message
	over   chan struct{} // closed when the subscription has ended
}

// Subscribe makes a call after which the kernel pushes events, and calls each for them, one after the other: events
// that are not read yet stay in the kernel. It returns the first error of each, the error with which the kernel
// refuses or ends the subscription, the cause of ctx's end, or why the connection ended. A Client has one
// subscription at most, and must be closed after it.
func (c *Client) Subscribe(ctx context.Context, m schema.Message, each func(schema.Message) error) error {
	return c.SubscribeTo(ctx, m, func(schema.Message) error { return nil }, each)
}

// SubscribeTo is Subscribe that calls answered with the call's answer before the first event. It returns the error of
// answered as well.
func (c *Client) SubscribeTo(ctx context.Context, m schema.Message, answered, each func(schema.Message) error) error {
	h := &heard{events: make(chan schema.Message), over: make(chan struct{})}
	defer close(h.over)
	c.mu.Lock()
	busy := c.heard != nil
	if !busy {
		c.heard = h
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
				e.Data = schema.Resolve(row.Output(), e.Data, []byte(e.Meta.Refs), readBlob)
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

// hear passes an event to the subscription, and blocks until it is taken.
func (c *Client) hear(m schema.Message) {
	c.mu.Lock()
	h := c.heard
	c.mu.Unlock()
	if h == nil {
		return
	}
	select {
	case h.events <- m:
	case <-h.over:
	}
}

// follow replaces an answer's references by their content (PROTOCOL 5): those that the kernel made because the answer
// did not fit a line, and those to a text that its syscall describes. A reference that cannot be read stays.
func follow(m *schema.Message) {
	if m.Kind != schema.KindReply {
		return
	}
	var form *schema.Type // nil: a registered syscall's
	if row, ok := schema.Lookup(m.Type); ok {
		form = row.Output()
	}
	m.Data = schema.Resolve(form, m.Data, []byte(m.Meta.Refs), readBlob)
	m.Meta.Refs = ""
}

// errNoBlob says that a reference is not to a file.
var errNoBlob = errors.New("reference to no regular file")

// readBlob reads a file that the kernel refers to.
func readBlob(p schema.BlobPointer) (content []byte, err error) {
	if p.Scheme != "file" {
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

// PutBlob writes a file into the blob directory of a kernel on this machine, for a call to refer to. remove removes
// it; else the kernel does after an hour.
func (c *Client) PutBlob(content []byte) (at schema.BlobPointer, remove func() error, err error) {
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

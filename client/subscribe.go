package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// heard is where the events of a subscription go.
type heard struct {
	events chan schema.Message
	over   chan struct{} // closed when nobody takes them any more
}

// Subscribe makes a call after which the kernel pushes events, and calls each for them, one after the other: what is not taken
// yet stays with the kernel. It returns the first error of each, the error with which the kernel refuses or ends the
// subscription, the cause of ctx's end, or why the connection ended. A Client has one subscription at most, and has to be closed
// after it.
func (c *Client) Subscribe(ctx context.Context, m schema.Message, each func(schema.Message) error) error {
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
	if _, err := c.Do(ctx, m); err != nil {
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

// hear hands an event to the subscription, once that takes it.
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

// follow puts in place of an answer's references what they stand for (PROTOCOL 5): those that the kernel made because the
// answer did not fit a line, and those to a text that its syscall describes. What cannot be read here stays a reference.
func follow(m *schema.Message) {
	if m.Kind != schema.KindReply {
		return
	}
	var form *schema.Type // nil: of a syscall that was registered
	if row, ok := schema.Lookup(m.Type); ok {
		form = row.Output()
	}
	m.Data = schema.Resolve(form, m.Data, []byte(m.Meta.Refs), readBlob)
	m.Meta.Refs = ""
}

// errNoBlob says that a reference is to no file.
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

// PutBlob writes a file into the blob directory of a kernel on this machine, for a call to refer to. remove removes it; else the kernel does, in an hour.
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

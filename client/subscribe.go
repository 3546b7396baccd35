package client

import (
	"context"
	"fmt"
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

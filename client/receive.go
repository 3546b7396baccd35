package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// call is a message that waits for its answer. done is closed when one of answer and err is set.
type call struct {
	id       string
	progress chan *schema.ProgressedEvent // the latest that nobody has looked at; nil: none is wanted
	done     chan struct{}
	answer   schema.Message
	err      error
}

func (k *call) outcome() (schema.Message, error) {
	if k.err != nil {
		return schema.Message{}, k.err
	}
	if k.answer.Kind == schema.KindError {
		return k.answer, answerOf(&k.answer)
	}
	return k.answer, nil
}

// receiveAll hands out answers until the connection ends.
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
			c.settle(m)
		case schema.KindEvent:
			if m.Type == schema.SyscallProgressed {
				c.progressed(m)
			} else {
				c.hear(m)
			}
		}
	}
}

// progressed hands m to the call that it is about, unless nobody waits for that any more.
func (c *Client) progressed(m schema.Message) {
	in, failure := schema.TypeOf[schema.ProgressedEvent]().Decode(m.Data)
	if failure != nil {
		return // a newer kernel's
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

// lost says what the end of the connection means.
func lost(err error) error {
	if errors.Is(err, io.EOF) {
		return fault.DaemonHungUp.New(hungUp)
	}
	return fault.DaemonHungUp.New("%s: %v", hungUp, err).Wrap(err)
}

// settle hands m to the call that it answers. Where m does not say which, it is the oldest one, since answers come in the order
// of their requests (PROTOCOL 2): the kernel could not read the id. The answer to a call that nobody waits for any more is
// dropped.
func (c *Client) settle(m schema.Message) {
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

package ipc

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// chunkSize is how many bytes a chunk of a snapshot has at least, except the first and the last. A mailbox is not cut in
// two, so one chunk may be as large as a mailbox full of the longest messages.
const chunkSize = 64 << 10

// chunk is a part of a snapshot: a first one with what is not in a mailbox, then the mailboxes by ascending PID.
type chunk struct {
	Last      *int64  `json:"last,omitzero"`
	Addressed []int64 `json:"addressed,omitzero"`
	Boxes     []box   `json:"boxes,omitzero"`
}

// box is one mailbox, in the order in which it is read.
type box struct {
	PID        int64                `json:"pid"`
	Messages   []schema.MailMessage `json:"messages"`
	Subscriber string               `json:"subscriber,omitzero"`
	Flight     []flight             `json:"flight,omitzero"`
	Origins    []string             `json:"origins,omitzero"` // of the operator's: of each message, then of each in flight
}

// flight is a message that is to be acknowledged.
type flight struct {
	Conn    string             `json:"conn"`
	Message schema.MailMessage `json:"message"`
}

// Snapshot implements kernel.Domain. The same state always gives the same bytes. They are written by hand: payloads must
// come back exactly as they were sent.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	last, addressed, boxes := d.last, d.addressed, d.boxes.Copy()
	return func(write func(chunk []byte) error) error {
		head, err := schema.Marshal(&chunk{Last: &last, Addressed: addressed})
		if err == nil {
			err = write(head)
		}
		if err != nil {
			return err
		}
		const open = `{"boxes":[`
		part := []byte(open)
		boxes.Scan(func(pid int64, b mailbox) bool {
			if len(part) > len(open) {
				part = append(part, ',')
			}
			if part = b.append(part, pid); len(part) >= chunkSize {
				err = write(append(part, "]}"...))
				part = append(make([]byte, 0, len(part)), open...) // the writer may keep the one before
			}
			return err == nil
		})
		if err == nil && len(part) > len(open) {
			err = write(append(part, "]}"...))
		}
		return err
	}
}

func (b mailbox) append(dst []byte, pid int64) []byte {
	dst = strconv.AppendInt(append(dst, `{"pid":`...), pid, 10)
	dst = append(dst, `,"messages":[`...)
	first := true
	for _, list := range [...][]*message{b.urgent, b.normal} {
		for _, m := range list {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			read := m.to(pid)
			dst = read.AppendJSON(dst)
		}
	}
	dst = append(dst, ']')
	if b.subscriber != "" {
		dst = schema.AppendString(append(dst, `,"subscriber":`...), b.subscriber)
	}
	for i, f := range b.flight {
		dst = append(dst, [...]string{`,"flight":[`, `,`}[min(i, 1)]...)
		dst = schema.AppendString(append(dst, `{"conn":`...), f.conn)
		read := f.to(pid)
		dst = append(read.AppendJSON(append(dst, `,"message":`...)), '}')
	}
	if len(b.flight) > 0 {
		dst = append(dst, ']')
	}
	if pid == kernel.Operator {
		dst = b.appendOrigins(append(dst, `,"origins":[`...))
	}
	return append(dst, '}')
}

func (b mailbox) appendOrigins(dst []byte) []byte {
	first := true
	add := func(m *message) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = schema.AppendString(dst, m.origin)
	}
	for _, list := range [...][]*message{b.urgent, b.normal} {
		for _, m := range list {
			add(m)
		}
	}
	for _, f := range b.flight {
		add(f.message)
	}
	return append(dst, ']')
}

// Restore implements kernel.Domain.
func (d *Domain) Restore(raw []byte) error {
	if !schema.Valid(raw) {
		return fmt.Errorf("restore mailboxes: chunk of %d bytes is not JSON", len(raw))
	}
	data, err := d.forms.chunk.Decode(raw)
	if err != nil {
		return fmt.Errorf("restore mailboxes: %w", err)
	}
	c := data.(*chunk)
	if c.Last != nil {
		d.last, d.addressed = *c.Last, c.Addressed
	}
	for _, b := range c.Boxes {
		var list mailbox
		if b.PID != kernel.Operator {
			b.Origins = nil
		} else if len(b.Origins) != len(b.Messages)+len(b.Flight) {
			return fmt.Errorf("restore mailboxes: %d origins for the operator's %d messages", len(b.Origins), len(b.Messages)+len(b.Flight))
		}
		origin := func(i int) string {
			if b.Origins == nil {
				return ""
			}
			return b.Origins[i]
		}
		for i := range b.Messages {
			list = list.with(restored(&b.Messages[i], origin(i)))
		}
		list.subscriber = b.Subscriber
		for i := range b.Flight {
			list.flight = append(list.flight, flown{restored(&b.Flight[i].Message, origin(len(b.Messages)+i)), b.Flight[i].Conn})
		}
		d.boxes.Set(b.PID, list)
	}
	return nil
}

func restored(m *schema.MailMessage, origin string) *message {
	kept := &message{*m, origin}
	kept.Payload = bytes.Clone(m.Payload)
	return kept
}

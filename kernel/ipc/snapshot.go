package ipc

import (
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// record is a part of a snapshot: first what is not in a mailbox, then the marks of those that were closed, then the outbox, then each mailbox by ascending PID.
type record struct {
	Last      *int64      `json:"last,omitzero"`
	Addressed []int64     `json:"addressed,omitzero"`
	Ended     []endedMark `json:"ended,omitzero"`
	Posted    *posted     `json:"posted,omitzero"`
	Box       *box        `json:"box,omitzero"`
}

// posted is a message of the outbox.
type posted struct {
	schema.Posted
	Text          string `json:"text"` // the payload, exactly as it was sent
	Kernel        string `json:"kernel"`
	ExpiresAtTick *int64 `json:"expires_at_tick,omitzero"`
}

// box is a mailbox.
type box struct {
	PID        int64    `json:"pid"`
	Subscriber string   `json:"subscriber,omitzero"`
	Marks      []mark   `json:"marks,omitzero"`
	Letters    []letter `json:"letters"` // those to be read, in their order, then those in flight
}

// letter is a message in a mailbox.
type letter struct {
	schema.MailMessage
	Text   string  `json:"text"`            // the payload, exactly as it was sent
	Origin string  `json:"origin,omitzero"` // of the sender, in the operator's mailbox
	Conn   *string `json:"conn,omitzero"`   // of a message in flight: the connection that acknowledges it
}

var records = kernel.RecordsOf[record]()

// Snapshot implements kernel.Domain. The same state always gives the same bytes.
func (d *Domain) Snapshot() func(write func(chunk []byte) error) error {
	last, addressed, ended, boxes, outbox := d.last, d.addressed, d.ended, d.boxes.Copy(), d.outbox.Copy()
	return records.Writer(func(yield func(record) bool) {
		more := yield(record{Last: &last, Addressed: addressed})
		for part := range slices.Chunk(ended, 256) {
			more = more && yield(record{Ended: part})
		}
		outbox.Scan(func(_ int64, l *schema.Letter) bool {
			saved := &posted{Posted: l.Posted, Text: string(l.Payload), Kernel: l.Kernel, ExpiresAtTick: l.ExpiresAtTick}
			saved.Payload = nil
			more = more && yield(record{Posted: saved})
			return more
		})
		boxes.Scan(func(pid int64, b mailbox) bool {
			saved := &box{PID: pid, Subscriber: b.subscriber, Marks: b.marks}
			put := func(m *message, conn *string) {
				l := letter{m.to(pid), string(m.Payload), m.origin, conn}
				l.Payload = nil
				saved.Letters = append(saved.Letters, l)
			}
			for _, list := range [...][]*message{b.urgent, b.normal} {
				for _, m := range list {
					put(m, nil)
				}
			}
			for _, f := range b.flight {
				put(f.message, &f.conn)
			}
			more = more && yield(record{Box: saved})
			return more
		})
	})
}

// Restore implements kernel.Domain.
func (d *Domain) Restore(chunk []byte) error {
	return records.Read(chunk, func(r *record) error {
		if r.Last != nil {
			d.last, d.addressed = *r.Last, r.Addressed
		}
		d.ended = append(d.ended, r.Ended...)
		if p := r.Posted; p != nil {
			p.Payload = schema.Value(p.Text)
			d.outbox.Set(p.MsgID, &schema.Letter{Posted: p.Posted, Kernel: p.Kernel, ExpiresAtTick: p.ExpiresAtTick})
			d.waiting[p.SenderPID]++
		}
		if r.Box == nil {
			return nil
		}
		restored := mailbox{subscriber: r.Box.Subscriber, marks: r.Box.Marks}
		for _, l := range r.Box.Letters {
			l.Payload = schema.Value(l.Text)
			m := &message{l.MailMessage, l.Origin}
			if l.Conn != nil {
				restored.flight = append(restored.flight, flown{m, *l.Conn})
			} else {
				restored = restored.with(m)
			}
		}
		d.boxes.Set(r.Box.PID, restored)
		return nil
	})
}

package ipc

import (
	"bytes"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

const urgent = "URGENT"

// message is what a mailbox holds. It is immutable: a broadcast puts the same one into every mailbox, so its receiver is only
// known when it is read.
type message struct {
	schema.MailMessage
	origin string // of its sender, in the operator's mailbox
}

// newMessage makes a message of normal priority that does not expire. The payload is copied: the entry's belongs to a line that is
// about to be overwritten.
func newMessage(e *kernel.Entry, id int64, intent *string, payload []byte) *message {
	return &message{MailMessage: schema.MailMessage{
		MsgID: id, SenderPID: e.PID, Intent: said(intent), Payload: bytes.Clone(payload), Priority: "NORMAL", SentTick: e.Tick,
		Causation: e.Meta.ID, Correlation: e.Meta.Correlation,
	}}
}

// to is the message as a receiver reads it.
func (m *message) to(pid int64) schema.MailMessage {
	read := m.MailMessage
	read.ReceiverPID = pid
	return read
}

// said is what an optional text says: no intent is the empty one.
func said(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// past reports whether a message that expires then is too old at tick.
func past(expires *int64, tick int64) bool { return expires != nil && tick > *expires }

// wanted reports whether m is of the intent that is asked for; nil asks for any.
func (m *message) wanted(intent *string) bool { return intent == nil || *intent == m.Intent }

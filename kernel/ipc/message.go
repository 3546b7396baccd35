package ipc

import (
	"bytes"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

const urgent = "URGENT"

// message is what a mailbox holds. It is immutable: a broadcast puts the same one into every mailbox.
type message struct {
	id       int64
	sender   int64
	intent   string
	payload  []byte
	priority string
	sent     int64  // tick
	expires  *int64 // last tick at which it may be received; nil: none is the last

	origin      string // of its sender, in the operator's mailbox
	redelivered bool   // it was delivered before, and not acknowledged
	causation   string
	correlation string
}

// newMessage makes a message of normal priority that does not expire. The payload is copied: the call's belongs to a
// line that is about to be overwritten.
func newMessage(call *kernel.Call, id int64, intent *string, payload []byte) *message {
	return &message{
		id: id, sender: call.PID, intent: said(intent), payload: bytes.Clone(payload), priority: "NORMAL", sent: call.Tick,
		causation: call.Message.Meta.ID, correlation: call.Message.Meta.Correlation,
	}
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
func (m *message) wanted(intent *string) bool { return intent == nil || *intent == m.intent }

// append appends m as JSON, as schema.MailMessage describes it; the payload exactly as it was sent.
func (m *message) append(dst []byte, receiver int64) []byte {
	dst = strconv.AppendInt(append(dst, `{"msg_id":`...), m.id, 10)
	dst = strconv.AppendInt(append(dst, `,"sender_pid":`...), m.sender, 10)
	dst = strconv.AppendInt(append(dst, `,"receiver_pid":`...), receiver, 10)
	dst = schema.AppendString(append(dst, `,"intent":`...), m.intent)
	dst = append(append(dst, `,"payload":`...), m.payload...)
	dst = schema.AppendString(append(dst, `,"priority":`...), m.priority)
	dst = strconv.AppendInt(append(dst, `,"sent_tick":`...), m.sent, 10)
	if m.expires != nil {
		dst = strconv.AppendInt(append(dst, `,"expires_at_tick":`...), *m.expires, 10)
	}
	if m.redelivered {
		dst = append(dst, `,"redelivered":true`...)
	}
	if m.causation != "" {
		dst = schema.AppendString(append(dst, `,"causation":`...), m.causation)
	}
	if m.correlation != "" {
		dst = schema.AppendString(append(dst, `,"correlation":`...), m.correlation)
	}
	return append(dst, '}')
}

package ipc

import (
	"bytes"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// mailbox holds the messages of a process, oldest first. It is a value: a change makes another one, and overwrites
// nothing that a copy of the old one uses, so that a snapshot copies no messages.
type mailbox struct {
	urgent []*message // received before the others
	normal []*message
	mortal bool // a message may expire; if false, none needs to be checked

	flight     []flown // delivered and not acknowledged, in the order of delivery
	subscriber string  // the connection that messages are pushed to, or ""
	marks      []mark  // what it has taken of other kernels, one of each; a change makes another slice
}

// full reports whether there is no room for one more message at tick: expired messages take none (PROTOCOL 6),
// unacknowledged ones do.
func (b mailbox) full(tick int64, capacity int) bool {
	if len(b.flight)+len(b.urgent)+len(b.normal) < capacity {
		return false
	}
	if !b.mortal {
		return true
	}
	n := len(b.flight)
	if n >= capacity {
		return true
	}
	b.each(tick, nil, func(*message) bool {
		n++
		return n < capacity
	})
	return n >= capacity
}

// fullOf is full for the operator's mailbox and the senders of one origin: each origin has its own room there, so
// that none can block another, or learn how much it sends.
func (b mailbox) fullOf(origin string, tick int64, capacity int) bool {
	n := 0
	for _, f := range b.flight {
		if f.origin == origin {
			n++
		}
	}
	b.each(tick, nil, func(m *message) bool {
		if m.origin == origin {
			n++
		}
		return n < capacity
	})
	return n >= capacity
}

// each calls yield with the messages that are received at tick, in order, until yield returns false.
func (b mailbox) each(tick int64, intent *string, yield func(*message) bool) {
	for _, list := range [...][]*message{b.urgent, b.normal} {
		for _, m := range list {
			if !past(m.ExpiresAtTick, tick) && m.wanted(intent) && !yield(m) {
				return
			}
		}
	}
}

// with returns the mailbox with one more message.
func (b mailbox) with(m *message) mailbox {
	if m.Priority == urgent {
		b.urgent = append(b.urgent, m) // copies of the mailbox do not see this element
	} else {
		b.normal = append(b.normal, m)
	}
	b.mortal = b.mortal || m.ExpiresAtTick != nil
	return b
}

// without returns the mailbox without the first n messages that are received at tick, and without expired ones.
func (b mailbox) without(tick int64, intent *string, n int) mailbox {
	if !b.mortal && intent == nil {
		first := min(n, len(b.urgent))
		b.urgent, b.normal = skip(b.urgent, first), skip(b.normal, n-first)
		return b
	}
	drop := func(m *message) bool {
		if past(m.ExpiresAtTick, tick) {
			return true
		}
		if n == 0 || !m.wanted(intent) {
			return false
		}
		n--
		return true
	}
	b.urgent, b.normal = remove(b.urgent, drop), remove(b.normal, drop)
	b.mortal = b.mortal && len(b.urgent)+len(b.normal) > 0
	return b
}

// skip returns list without its first n messages. An empty result keeps no array.
func skip(list []*message, n int) []*message {
	if n == len(list) {
		return nil
	}
	return list[n:]
}

// remove returns list without the messages for which drop returns true. It calls drop once for each, in order.
// Usually none or the first is dropped; it copies only if one in between is.
func remove(list []*message, drop func(*message) bool) []*message {
	for len(list) > 0 && drop(list[0]) {
		list = list[1:]
	}
	if len(list) == 0 {
		return nil
	}
	for i := 1; i < len(list); i++ {
		if !drop(list[i]) {
			continue
		}
		kept := append(make([]*message, 0, len(list)), list[:i]...)
		for _, m := range list[i+1:] {
			if !drop(m) {
				kept = append(kept, m)
			}
		}
		return kept
	}
	return list
}

const (
	urgent = "URGENT"
	normal = "NORMAL"
)

// message is a message in a mailbox. It is immutable: a broadcast puts the same one into every mailbox, so the
// receiver is filled in when it is read.
type message struct {
	schema.MailMessage
	origin string // of the sender, in the operator's mailbox
}

// newMessage makes a message of normal priority that does not expire. It copies the payload, which aliases a line.
func newMessage(e *kernel.Entry, id int64, intent *string, payload []byte) *message {
	return &message{MailMessage: schema.MailMessage{
		MsgID: id, SenderPID: e.PID, Intent: said(intent), Payload: bytes.Clone(payload), Priority: normal, SentTick: e.Tick,
		Causation: e.Meta.ID, Correlation: e.Meta.Correlation,
	}}
}

// to returns the message as a receiver reads it.
func (m *message) to(pid int64) schema.MailMessage {
	read := m.MailMessage
	read.ReceiverPID = pid
	return read
}

// said returns an optional text; an empty intent is no intent.
func said(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// past reports whether a message with that expiry has expired at tick.
func past(expires *int64, tick int64) bool { return expires != nil && tick > *expires }

// wanted reports whether m has the intent; nil matches any.
func (m *message) wanted(intent *string) bool { return intent == nil || *intent == m.Intent }

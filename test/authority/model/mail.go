package model

import (
	"slices"

	"github.com/promptware-os/pwos/schema"
)

// Box is a mailbox.
type Box struct {
	Letters  []*Letter // in the order of sending
	Follower string    // the connection that has subscribed to it; "": none
}

// Letter is a message in a mailbox.
type Letter struct {
	schema.MailMessage
	Conn string // the connection that must acknowledge it; "": not delivered
}

// BoxOf returns the mailbox of pid; nil if there is none.
func (m *Model) BoxOf(pid int64) *Box {
	if pid == Operator {
		return m.Box
	}
	if p := m.Proc(pid); p != nil {
		return p.Box
	}
	return nil
}

func (l *Letter) expired(tick int64) bool { return l.ExpiresAtTick != nil && tick > *l.ExpiresAtTick }

// Readable returns the letters that a receive returns, in order: urgent ones first, then by age. A nil intent selects all.
func (m *Model) Readable(b *Box, intent *string) []*Letter {
	list := slices.DeleteFunc(slices.Clone(b.Letters), func(l *Letter) bool {
		return l.Conn != "" || l.expired(m.Tick) || intent != nil && *intent != l.Intent
	})
	rank := func(l *Letter) int {
		if l.Priority == "URGENT" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b *Letter) int { return rank(a) - rank(b) })
	return list
}

// Full reports whether a mailbox is full. Expired letters do not count, unless they were delivered and are not acknowledged.
func (m *Model) Full(b *Box) bool {
	n := 0
	for _, l := range b.Letters {
		if l.Conn != "" || !l.expired(m.Tick) {
			n++
		}
	}
	return n >= m.Capacity
}

// post puts a message into mailboxes.
func (m *Model) post(to []int64, mail schema.MailMessage) {
	m.Messages++
	mail.MsgID, mail.SentTick = m.Messages, m.Tick
	for _, pid := range to {
		mail.ReceiverPID = pid
		b := m.BoxOf(pid)
		b.Letters = append(b.Letters, &Letter{MailMessage: mail})
	}
}

// take removes letters from a mailbox; with ack, it marks them as delivered to a connection, which must acknowledge them.
func (b *Box) take(list []*Letter, ack bool, conn string) {
	for _, l := range list {
		if ack {
			l.Conn = conn
		} else {
			b.Letters = slices.DeleteFunc(b.Letters, func(o *Letter) bool { return o == l })
		}
	}
}

// acknowledge returns the letters that remain after an acknowledgement of ids, and the ids that it found. A letter that was returned can
// still be acknowledged until it expires.
func (m *Model) acknowledge(b *Box, ids []int64) (left []*Letter, found []int64) {
	left = slices.Clone(b.Letters)
	for _, id := range ids {
		i := slices.IndexFunc(left, func(l *Letter) bool {
			return l.MsgID == id && (l.Conn != "" || l.Redelivered && !l.expired(m.Tick))
		})
		if i >= 0 {
			found, left = append(found, id), slices.Delete(left, i, i+1)
		}
	}
	return left, found
}

// Return returns unacknowledged letters of a connection to the mailboxes of pids, and ends its subscriptions; "" means all connections.
func (m *Model) Return(conn string, pids ...int64) {
	ended := func(of string) bool { return of != "" && (conn == "" || of == conn) }
	for _, pid := range pids {
		b := m.BoxOf(pid)
		if b == nil {
			continue
		}
		if ended(b.Follower) {
			b.Follower = ""
		}
		for _, l := range b.Letters {
			if ended(l.Conn) {
				l.Conn, l.Redelivered = "", true
			}
		}
	}
}

// read returns the data of the reply to a receive.
func read(list []*Letter) string {
	var out schema.ReceiveOutput
	for _, l := range list {
		out.Messages = append(out.Messages, l.MailMessage)
	}
	return string(out.AppendJSON(nil))
}

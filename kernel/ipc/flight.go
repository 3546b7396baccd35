package ipc

import "slices"

// flown is a message that was delivered and is not acknowledged yet.
type flown struct {
	*message
	conn string // connection that it was delivered to
}

// fly returns the mailbox with the first n messages that are received at tick in flight to a connection.
func (b mailbox) fly(tick int64, intent *string, n int, conn string) mailbox {
	left := b.without(tick, intent, n)
	b.each(tick, intent, func(m *message) bool {
		if n == 0 {
			return false
		}
		n--
		left.flight = append(left.flight, flown{m, conn}) // copies of the mailbox do not see this element
		return true
	})
	return left
}

// acknowledged returns the mailbox without a message that was delivered with ack, even if it has returned to the
// queue since, unless it has expired there. It returns false if there is no such message.
func (b mailbox) acknowledged(tick, id int64) (mailbox, bool) {
	if i := slices.IndexFunc(b.flight, func(f flown) bool { return f.MsgID == id }); i >= 0 {
		b.flight = dropFlown(b.flight, i)
		return b, true
	}
	found := false
	drop := func(m *message) bool {
		hit := m.Redelivered && m.MsgID == id && !past(m.ExpiresAtTick, tick)
		found = found || hit
		return hit
	}
	b.urgent, b.normal = remove(b.urgent, drop), remove(b.normal, drop)
	return b, found
}

// dropFlown returns list without its i-th element. Usually that is the first; else the rest is copied.
func dropFlown(list []flown, i int) []flown {
	switch {
	case len(list) == 1:
		return nil
	case i == 0:
		return list[1:]
	}
	return slices.Concat(list[:i], list[i+1:])
}

// back returns the mailbox after a connection has ended: messages in flight to it are queued again, in their old
// order. "" means every connection.
func (b mailbox) back(conn string) mailbox {
	ended := func(of string) bool { return conn == "" || of == conn }
	if ended(b.subscriber) {
		b.subscriber = ""
	}
	var kept []flown
	var urgents, normals []*message
	for _, f := range b.flight {
		if !ended(f.conn) {
			kept = append(kept, f)
			continue
		}
		again := *f.message
		again.Redelivered = true
		b.mortal = b.mortal || again.ExpiresAtTick != nil
		if again.Priority == urgent {
			urgents = append(urgents, &again)
		} else {
			normals = append(normals, &again)
		}
	}
	b.flight = kept
	b.urgent, b.normal = inOrder(b.urgent, urgents), inOrder(b.normal, normals)
	return b
}

// inOrder merges two lists in the order in which their messages were sent.
func inOrder(list, more []*message) []*message {
	if len(more) == 0 {
		return list
	}
	all := slices.Concat(more, list)
	slices.SortFunc(all, func(a, b *message) int { return int(a.MsgID - b.MsgID) })
	return all
}

// held reports whether back would change the mailbox for a connection.
func (b mailbox) held() bool { return b.subscriber != "" || len(b.flight) > 0 }

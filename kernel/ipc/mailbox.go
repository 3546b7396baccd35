package ipc

// mailbox holds the messages of a process, oldest first. It is a value: a change makes another, and nothing that a
// copy of the old one shows is ever overwritten, so that a snapshot needs to copy no messages.
type mailbox struct {
	urgent []*message // received before the others
	normal []*message
	mortal bool // a message may expire; where none does, there is no need to look at each

	flight     []flown // delivered and to be acknowledged, in the order of delivery
	subscriber string  // the connection that it is pushed to; empty: none
}

// full reports whether there is no room for one more at tick: expired messages take none (PROTOCOL 6), those that are to be
// acknowledged do.
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

// fullOf reports the same of the operator's mailbox for the senders of one origin: each has room of its own there, so that none
// keeps another's out, nor can tell how much another sends.
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

// each calls yield with what is received at tick, in order, until yield returns false.
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
		b.urgent = append(b.urgent, m) // behind the end that older copies know
	} else {
		b.normal = append(b.normal, m)
	}
	b.mortal = b.mortal || m.ExpiresAtTick != nil
	return b
}

// without returns the mailbox without the first n messages that are received at tick, and without the expired ones.
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

// skip returns list without its first n messages. An empty one keeps no array.
func skip(list []*message, n int) []*message {
	if n == len(list) {
		return nil
	}
	return list[n:]
}

// remove returns list without the messages that drop names. It asks once for each, in order. Mostly the first goes or none;
// what stays is copied only where one goes from between.
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

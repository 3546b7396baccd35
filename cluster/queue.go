package cluster

import (
	"cmp"
	"maps"
	"slices"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// maxListed is how many messages a list of the queue has, so that it fits a line.
const maxListed = 100

// queue lists the letters that have no outcome.
func (l *Link) queue() (out schema.ClusterQueueOutput) {
	out.Messages = []schema.QueuedMessage{}
	for _, p := range l.senders() {
		for _, one := range p.list() {
			if len(out.Messages) < maxListed {
				out.Messages = append(out.Messages, one)
			} else {
				out.More++
			}
		}
	}
	return out
}

// senders returns the senders for other kernels, by name.
func (l *Link) senders() []*peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.peers), func(a, b *peer) int { return cmp.Compare(a.to, b.to) })
}

// list describes the letters of the sender, by process and number.
func (p *peer) list() (all []schema.QueuedMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	room := p.Room()
	for _, pid := range slices.Sorted(maps.Keys(p.lanes)) {
		for i, one := range p.lanes[pid].parcels {
			q := schema.QueuedMessage{
				MsgID: one.MsgID, SenderPID: one.SenderPID, ReceiverPID: pid, Kernel: p.to, Bytes: int64(one.size), Sent: one.tried, Reason: p.trouble,
			}
			switch {
			case one.size > room:
				q.Reason = errTooLarge(one.size, room).Message
			case i > 0:
				q.Reason = "an earlier message to the process waits"
			case q.Reason == "" && p.lanes[pid].pause > 0:
				q.Reason = "the kernel " + p.to + " does not accept it for now: the mailbox is full, or it waits for an approval there"
			}
			all = append(all, q)
		}
	}
	return all
}

// Drop settles a letter that the operator does not want to be sent any more.
func (l *Link) Drop(msgID int64) (schema.ClusterDropOutput, error) {
	for _, p := range l.senders() {
		if out, ok := p.drop(msgID); ok {
			return out, nil
		}
	}
	return schema.ClusterDropOutput{}, fault.ClusterNotQueued.New("no message %d waits for another kernel", msgID)
}

func (p *peer) drop(msgID int64) (out schema.ClusterDropOutput, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lanes {
		at := slices.IndexFunc(l.parcels, func(one *parcel) bool { return one.MsgID == msgID })
		if at < 0 {
			continue
		}
		one := l.parcels[at]
		out = schema.ClusterDropOutput{MsgID: msgID, ReceiverPID: one.ReceiverPID, Kernel: p.to, Sent: one.tried || one.sending}
		reason := "the operator dropped it before it was sent"
		if out.Sent {
			reason = "the operator dropped it; it had been sent, and may have arrived"
		}
		p.settle(one, schema.MailDropped, reason, nil)
		l.parcels = slices.Delete(slices.Clone(l.parcels), at, at+1)
		return out, true
	}
	return out, false
}

package ipc

import (
	"strconv"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// nothing is the answer of Ipc.Receive when there is nothing.
const nothing = `{"messages":[]}`

// counted is schema.ReceiveOutput where only the number of its messages counts.
type counted struct {
	Messages []schema.Value `json:"messages"`
}

// receive answers Ipc.Receive from the mailbox of the process that the call acts as. A call that waits is decided again
// whenever something is put into that mailbox, of whatever intent, and when the mailbox is closed.
func (d *Domain) receive(call *kernel.Call, in *schema.ReceiveInput) (schema.ReceiveOutput, error) {
	box, err := d.box(call)
	if err != nil {
		return schema.ReceiveOutput{}, err
	}
	out := box.take(call, in.Intent, most(in))
	switch {
	case len(out.Messages) > 0 && yes(in.Ack):
		call.OnClose(back(call))
	case len(out.Messages) == 0 && in.WaitMS != nil && !call.Final:
		call.Park(time.Duration(*in.WaitMS) * time.Millisecond)
	}
	return out, nil
}

// box is the mailbox of the process that a call acts as.
func (d *Domain) box(call *kernel.Call) (mailbox, error) {
	box, ok := d.get(call.PID)
	if !ok {
		return box, fault.IpcNoMailbox.New("pid %d has no mailbox: it has ended, or never was", call.PID).With("pid", strconv.FormatInt(call.PID, 10))
	}
	return box, nil
}

// take returns the next messages, at most limit of them and as many as an answer has room for.
func (b mailbox) take(call *kernel.Call, intent *string, limit int64) (out schema.ReceiveOutput) {
	var last []byte // reused to measure messages
	size := 0
	b.each(call.Tick, intent, func(m *message) bool {
		if int64(len(out.Messages)) == limit {
			return false
		}
		next := m.to(call.PID)
		switch len(out.Messages) {
		case 0: // it is taken at any length, or it would never be
			out.Messages = make([]schema.MailMessage, 0, min(int(limit), len(b.urgent)+len(b.normal)))
		case 1:
			size = len(out.AppendJSON(nil))
			fallthrough
		default:
			last = next.AppendJSON(last[:0])
			if size += len(",") + len(last); size > kernel.MaxData {
				return false
			}
		}
		out.Messages = append(out.Messages, next)
		return true
	})
	return out
}

func yes(b *bool) bool { return b != nil && *b }

// most is how many messages an answer may hold: who names no number gets what is there, as far as it fits.
func most(in *schema.ReceiveInput) int64 {
	if in.Max == nil {
		return schema.MaxReceive
	}
	return *in.Max
}

// applyReceive takes as many messages out as the answer holds, and what has expired. How many had room in it was decided by the
// limits of its day; which ones they are follows from the order.
func (d *Domain) applyReceive(e *kernel.Entry, in *schema.ReceiveInput) {
	d.taken(e, in.Intent, d.count(e, most(in)), yes(in.Ack))
}

// taken takes the next n messages out of a mailbox; those that are to be acknowledged are in flight from then on.
func (d *Domain) taken(e *kernel.Entry, intent *string, n int, ack bool) {
	box, ok := d.get(e.PID)
	if !ok {
		return
	}
	if ack {
		box = box.fly(e.Tick, intent, n, e.Conn)
	} else {
		box = box.without(e.Tick, intent, n)
	}
	d.boxes.Set(e.PID, box)
}

// count returns how many messages the answer holds, of limit at most.
func (d *Domain) count(e *kernel.Entry, limit int64) int {
	switch {
	case string(e.Data) == nothing:
		return 0
	case limit == 1:
		return 1
	}
	return len(kernel.Reply[counted](e, d.forms.received).Messages)
}

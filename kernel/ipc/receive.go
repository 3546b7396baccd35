package ipc

import (
	"strconv"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// nothing is the answer of Ipc.Receive without messages.
const nothing = `{"messages":[]}`

// counted is schema.ReceiveOutput with messages that are only counted.
type counted struct {
	Messages []schema.Value `json:"messages"`
}

// receive answers Ipc.Receive from the mailbox of the process that the call acts as. A waiting call is decided again
// when a message of any intent arrives, and when the mailbox is closed.
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
		return box, fault.IpcNoMailbox.New("pid %d has no mailbox: it has ended, or never existed", call.PID).With("pid", strconv.FormatInt(call.PID, 10))
	}
	return box, nil
}

// take returns the next messages, at most limit and as many as fit an answer.
func (b mailbox) take(call *kernel.Call, intent *string, limit int64) (out schema.ReceiveOutput) {
	var last []byte // reused to measure messages
	size := 0
	b.each(call.Tick, intent, func(m *message) bool {
		if int64(len(out.Messages)) == limit {
			return false
		}
		next := m.to(call.PID)
		switch len(out.Messages) {
		case 0: // the first message is taken at any length: else it would never be
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

// most is the number of messages asked for; without a number, as many as fit.
func most(in *schema.ReceiveInput) int64 {
	if in.Max == nil {
		return schema.MaxReceive
	}
	return *in.Max
}

// applyReceive removes as many messages as the answer holds, and expired ones. Their number depended on the limits of
// its time; which ones they are follows from the order.
func (d *Domain) applyReceive(e *kernel.Entry, in *schema.ReceiveInput) {
	d.taken(e, in.Intent, d.count(e, most(in)), yes(in.Ack))
}

// taken removes the next n messages of a mailbox; those that need an acknowledgement are in flight from then on.
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

// count returns the number of messages in the answer, of limit at most.
func (d *Domain) count(e *kernel.Entry, limit int64) int {
	switch {
	case string(e.Data) == nothing:
		return 0
	case limit == 1:
		return 1
	}
	return len(kernel.Reply[counted](e, d.received).Messages)
}

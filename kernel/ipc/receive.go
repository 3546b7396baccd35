package ipc

import (
	"fmt"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// nothing is the answer of Ipc.Receive when there is nothing.
const nothing = `{"messages":[]}`

// counted is schema.ReceiveOutput for who wants to know only how many there are.
type counted struct {
	Messages []schema.Value `json:"messages"`
}

// receive answers Ipc.Receive from the mailbox of the process that the call acts as. A call that waits is decided again
// whenever something is put into that mailbox, of whatever intent, and when the mailbox is closed.
func (d *Domain) receive(call *kernel.Call, in *schema.ReceiveInput) (kernel.Result, error) {
	box, err := d.box(call)
	if err != nil {
		return kernel.Result{}, err
	}
	data, n := box.take(call, in.Intent, most(in))
	if n == 0 && in.WaitMS != nil && *in.WaitMS > 0 && !call.Final {
		return kernel.Result{Wait: time.Duration(*in.WaitMS) * time.Millisecond}, nil
	}
	result := kernel.Result{Data: data}
	if n > 0 && yes(in.Ack) {
		result.Lasting = &kernel.Lasting{End: back(call)}
	}
	return result, nil
}

// box is the mailbox of the process that a call acts as.
func (d *Domain) box(call *kernel.Call) (mailbox, error) {
	box, ok := d.get(call.PID)
	if !ok {
		return box, schema.Errorf(schema.NotFound, "pid %d has no mailbox: it has ended, or never was", call.PID)
	}
	return box, nil
}

// take writes the answer that holds the next messages, at most limit of them, and says how many they are.
func (b mailbox) take(call *kernel.Call, intent *string, limit int64) (data []byte, n int64) {
	const tail = len(`]}`)
	data = []byte(nothing[:len(nothing)-tail])
	b.each(call.Tick, intent, func(m *message) bool {
		if n == limit {
			return false
		}
		before := len(data)
		if n > 0 {
			data = append(data, ',')
		}
		data = m.append(data, call.PID)
		if n > 0 && len(data)+tail > kernel.MaxData { // a message too long by itself has to come some time
			data = data[:before]
			return false
		}
		n++
		return true
	})
	return append(data, "]}"...), n
}

func yes(b *bool) bool { return b != nil && *b }

// most is how many messages an answer may hold: who names no number gets what is there, as far as it fits.
func most(in *schema.ReceiveInput) int64 {
	if in.Max == nil {
		return schema.MaxReceive
	}
	return *in.Max
}

// received applies Ipc.Receive: as many messages go as the answer holds, and what has expired. How many had room in it was
// decided by the limits of its day; which ones they are follows from the order.
func (d *Domain) received(call *kernel.Call, in *schema.ReceiveInput) {
	d.taken(call, in.Intent, d.count(call, most(in)), yes(in.Ack))
}

// taken takes the next n messages out of a mailbox; those that are to be acknowledged are in flight from then on.
func (d *Domain) taken(call *kernel.Call, intent *string, n int, ack bool) {
	box, ok := d.get(call.PID)
	if !ok {
		return
	}
	if ack {
		box = box.fly(call.Tick, intent, n, call.Caller.Conn)
	} else {
		box = box.without(call.Tick, intent, n)
	}
	d.boxes.Set(call.PID, box)
}

// count says how many messages the answer holds, of limit at most. One that Decide cannot have written stops the kernel.
func (d *Domain) count(call *kernel.Call, limit int64) int {
	if string(call.Data) == nothing {
		return 0
	}
	if limit == 1 {
		return 1
	}
	out, err := d.forms.received.Decode(call.Data)
	if err != nil {
		panic(fmt.Sprintf("ipc: apply %s: %v", call.Message.Type, err))
	}
	return len(out.(*counted).Messages)
}

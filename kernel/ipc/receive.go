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
	box, ok := d.boxes.Get(call.PID)
	switch {
	case call.PID == kernel.Operator:
		return kernel.Result{}, schema.Errorf(schema.NotFound, "the operator has no mailbox: name a process with pid")
	case !ok:
		return kernel.Result{}, schema.Errorf(schema.NotFound, "pid %d has no mailbox: it has ended, or never was", call.PID)
	}
	const tail = len(`]}`)
	data, n := []byte(nothing[:len(nothing)-tail]), int64(0)
	box.each(call.Tick, in.Intent, func(m *message) bool {
		if n == most(in) {
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
	if n == 0 && in.WaitMS != nil && *in.WaitMS > 0 && !call.Final {
		return kernel.Result{Wait: time.Duration(*in.WaitMS) * time.Millisecond}, nil
	}
	return kernel.Result{Data: append(data, "]}"...)}, nil
}

func most(in *schema.ReceiveInput) int64 {
	if in.Max == nil {
		return 1
	}
	return *in.Max
}

// received applies Ipc.Receive: as many messages go as the answer holds, and what has expired. How many had room in it was
// decided by the limits of its day; which ones they are follows from the order.
func (d *Domain) received(call *kernel.Call, in *schema.ReceiveInput) {
	if box, ok := d.boxes.Get(call.PID); ok {
		d.boxes.Set(call.PID, box.without(call.Tick, in.Intent, d.taken(call, in)))
	}
}

// taken says how many messages the answer holds. One that Decide cannot have written stops the kernel.
func (d *Domain) taken(call *kernel.Call, in *schema.ReceiveInput) int {
	if string(call.Data) == nothing {
		return 0
	}
	if most(in) == 1 {
		return 1
	}
	out, err := d.forms.received.Decode(call.Data)
	if err != nil {
		panic(fmt.Sprintf("ipc: apply %s: %v", call.Message.Type, err))
	}
	return len(out.(*counted).Messages)
}

package ipc

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// tooDeep refuses a payload that who receives it could not be shown.
func tooDeep(payload schema.Value) *schema.Error {
	if schema.ValidWithin(payload, schema.MaxKeptDepth) {
		return nil
	}
	return kernel.Invalid("payload", "must not be nested deeper than %d levels", schema.MaxKeptDepth)
}

// send answers Syscall.SendMsg to one process. A message that is too late or not allowed is an answer, not an error, and
// the sender learns that before it learns whether there is room: sending it again would not help (PROTOCOL 6).
func (d *Domain) send(call *kernel.Call, in *schema.SendMsgInput) (kernel.Result, error) {
	box, ok := d.get(in.ReceiverPID)
	if !ok || !d.reaches(call, in.ReceiverPID) {
		return kernel.Result{}, schema.Errorf(schema.NotFound,
			"pid %d has no mailbox: it has ended, or never was; Process.List shows who is there", in.ReceiverPID)
	}
	if past(in.ExpiresAtTick, call.Tick) {
		return d.undelivered(in, expired, late(call, in)), nil
	}
	if rule := d.denied(said(in.Intent), call.PID, in.ReceiverPID); rule > 0 {
		return d.undelivered(in, blocked, fmt.Sprintf("governance rule %d of the configuration denies it", rule)), nil
	}
	if in.ReceiverPID == kernel.Operator && box.fullOf(call.Origin, call.Tick, d.capacity) {
		return kernel.Result{}, schema.Errorf(schema.QuotaExceeded,
			"MAILBOX_FULL: the operator's mailbox holds %d messages from this origin, as many as it may: send again once it has received some", d.capacity)
	}
	if in.ReceiverPID != kernel.Operator && box.full(call.Tick, d.capacity) {
		return kernel.Result{}, schema.Errorf(schema.QuotaExceeded,
			"MAILBOX_FULL: the mailbox of pid %d holds %d messages, as many as it may: send again once it has received some", in.ReceiverPID, d.capacity)
	}
	to := []int64{in.ReceiverPID}
	result := kernel.Result{Data: append(d.reply(in, delivered), '}'), Wakes: to}
	if in.ReceiverPID == kernel.Operator {
		result.Steps = address(to) // in older journals the operator's PID stood for everybody
	}
	return result, nil
}

func late(call *kernel.Call, in *schema.SendMsgInput) string {
	return fmt.Sprintf("it expired after tick %d, and it is tick %d", *in.ExpiresAtTick, call.Tick)
}

// deliveredMember is how the answer of a delivery is told from another: reasons are the domain's own words, and hold no
// such thing.
const deliveredMember = `"status":"` + delivered + `"`

// reply begins the answer of Syscall.SendMsg. The message has a number whatever becomes of it.
func (d *Domain) reply(in *schema.SendMsgInput, status string) []byte {
	data := append(make([]byte, 0, 96), `{"receiver_pid":`...)
	data = strconv.AppendInt(data, in.ReceiverPID, 10)
	data = append(append(append(data, `,"status":"`...), status...), `","msg_id":`...)
	return strconv.AppendInt(data, d.last+1, 10)
}

func (d *Domain) undelivered(in *schema.SendMsgInput, status, reason string) kernel.Result {
	data := append(d.reply(in, status), `,"reason":`...)
	return kernel.Result{Data: append(schema.AppendString(data, reason), '}')}
}

// sent applies Syscall.SendMsg.
func (d *Domain) sent(call *kernel.Call, in *schema.SendMsgInput) {
	d.last++
	addressed := d.addressed
	d.addressed = nil
	if !bytes.Contains(call.Data, []byte(deliveredMember)) {
		return
	}
	m := newMessage(call, d.last, in.Intent, in.Payload)
	m.expires = in.ExpiresAtTick
	if in.Priority != nil {
		m.priority = *in.Priority
	}
	if in.ReceiverPID == everybody {
		if slices.Contains(addressed, kernel.Operator) {
			m.origin = call.Origin
		}
		d.deliver(call.Tick, m, addressed)
		return
	}
	d.deliver(call.Tick, m, []int64{in.ReceiverPID})
}

// deliver puts m, which all of them share, into the mailboxes of the receivers, after what has expired there is dropped.
func (d *Domain) deliver(tick int64, m *message, receivers []int64) {
	for _, pid := range receivers {
		if box, ok := d.get(pid); ok {
			d.boxes.Set(pid, box.without(tick, nil, 0).with(m))
		}
	}
}

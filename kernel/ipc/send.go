package ipc

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// sendable refuses a payload that cannot be shown to its receiver, and an intent that people cannot read.
func sendable(payload schema.Value, intent *string) error {
	if !schema.ValidWithin(payload, schema.MaxKeptDepth) {
		return kernel.Invalid("payload", "must not be nested deeper than %d levels", schema.MaxKeptDepth)
	}
	return kernel.CheckName("intent", said(intent))
}

// sendMsg answers Syscall.SendMsg.
func (d *Domain) sendMsg(call *kernel.Call, in *schema.SendMsgInput) (out schema.SendMsgOutput, do *Forward, _ error) {
	if err := sendable(in.Payload, in.Intent); err != nil {
		return out, nil, err
	}
	if in.Abroad() {
		return d.sendAbroad(call, in)
	}
	var err error
	if in.ReceiverPID == everybody && call.PID == kernel.Operator {
		out, err = d.sendAll(call, in)
	} else {
		out, err = d.send(call, in)
	}
	return out, nil, err
}

// send answers Syscall.SendMsg to one process. A message that is too late or denied is an answer, not an error, and
// takes precedence over a full mailbox: sending again would not help (PROTOCOL 6).
func (d *Domain) send(call *kernel.Call, in *schema.SendMsgInput) (schema.SendMsgOutput, error) {
	to := in.ReceiverPID
	box, ok := d.get(to)
	if !ok || !d.reaches(call, to) {
		return schema.SendMsgOutput{}, fault.IpcNoMailbox.New("pid %d has no mailbox: it has ended, or never existed; Process.List lists the processes", to).
			With("pid", strconv.FormatInt(to, 10))
	}
	if past(in.ExpiresAtTick, call.Tick) {
		return d.reply(in, expired, late(call, in)), nil
	}
	if rule := d.denied(said(in.Intent), call.PID, to); rule > 0 {
		return d.reply(in, blocked, fmt.Sprintf("governance rule %d of the configuration denies it", rule)), nil
	}
	const again = "send again once it has received some"
	if to == kernel.Operator {
		if box.fullOf(call.Origin, call.Tick, d.capacity) {
			return schema.SendMsgOutput{}, fault.IpcMailboxFull.New(
				"MAILBOX_FULL: the operator's mailbox holds %d messages from this origin, as many as it may", d.capacity).WithFix(again)
		}
		post(call, []int64{to}) // in older journals the operator's PID stood for everybody
		return d.reply(in, delivered, ""), nil
	}
	if box.full(call.Tick, d.capacity) {
		return schema.SendMsgOutput{}, fault.IpcMailboxFull.New(
			"MAILBOX_FULL: the mailbox of pid %d holds %d messages, as many as it may", to, d.capacity).WithFix(again).With("pid", strconv.FormatInt(to, 10))
	}
	call.Wake(to)
	return d.reply(in, delivered, ""), nil
}

func late(call *kernel.Call, in *schema.SendMsgInput) string {
	return fmt.Sprintf("it expired after tick %d, and it is tick %d", *in.ExpiresAtTick, call.Tick)
}

// reply is the outcome of a message; every message has a number.
func (d *Domain) reply(in *schema.SendMsgInput, status, reason string) schema.SendMsgOutput {
	return schema.SendMsgOutput{ReceiverPID: in.ReceiverPID, Status: status, MsgID: d.last + 1, Reason: reason}
}

// deliveredMember recognises the reply of a delivery: no string within a reply can contain its quotes.
const deliveredMember = `"status":"` + delivered + `"`

func (d *Domain) applySend(e *kernel.Entry, in *schema.SendMsgInput) {
	d.last++
	addressed := d.addressed
	d.addressed = nil
	if in.Abroad() {
		d.applyAbroad(e, in)
		return
	}
	if !bytes.Contains(e.Data, []byte(deliveredMember)) {
		return
	}
	m := newMessage(e, d.last, in.Intent, in.Payload)
	m.ExpiresAtTick = in.ExpiresAtTick
	if in.Priority != nil {
		m.Priority = *in.Priority
	}
	if in.ReceiverPID == everybody {
		if slices.Contains(addressed, kernel.Operator) {
			m.origin = e.Origin
		}
		d.deliver(e.Tick, m, addressed)
		return
	}
	d.deliver(e.Tick, m, []int64{in.ReceiverPID})
}

// deliver puts m, which they all share, into the mailboxes of the receivers, after dropping expired
// messages there.
func (d *Domain) deliver(tick int64, m *message, receivers []int64) {
	for _, pid := range receivers {
		if box, ok := d.get(pid); ok {
			d.boxes.Set(pid, box.without(tick, nil, 0).with(m))
		}
	}
}

// Rule denies messages that match all its members. A rule without members denies all.
type Rule struct {
	Intent      *string
	SenderPID   *int64 // 0: the operator
	ReceiverPID *int64
}

func (r *Rule) denies(intent string, sender, receiver int64) bool {
	return (r.Intent == nil || *r.Intent == intent) &&
		(r.SenderPID == nil || *r.SenderPID == sender) &&
		(r.ReceiverPID == nil || *r.ReceiverPID == receiver)
}

// denied returns the number of the first rule that denies a message, from 1; 0 if none does.
func (d *Domain) denied(intent string, sender, receiver int64) int {
	for i := range d.rules {
		if d.rules[i].denies(intent, sender, receiver) {
			return i + 1
		}
	}
	return 0
}

package ipc

import (
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Last returns the number of the latest message. Only the owner of the domain may call it, as the methods below.
func (d *Domain) Last() int64 { return d.last }

// Unread returns how many messages the mailbox of pid holds at tick, unacknowledged ones included, and whether there is
// such a mailbox.
func (d *Domain) Unread(pid, tick int64) (n int64, ok bool) {
	box, ok := d.get(pid)
	box.each(tick, nil, func(*message) bool {
		n++
		return true
	})
	return n + int64(len(box.flight)), ok
}

// Held returns how many messages all mailboxes hold at tick.
func (d *Domain) Held(tick int64) (all int64) {
	d.boxes.Scan(func(pid int64, _ mailbox) bool {
		n, _ := d.Unread(pid, tick)
		all += n
		return true
	})
	return all
}

// Holders returns the processes whose mailboxes have a message to be read, ascending.
func (d *Domain) Holders(id int64) (pids []int64) {
	d.boxes.Scan(func(pid int64, box mailbox) bool {
		if box.find(id) != nil {
			pids = append(pids, pid)
		}
		return true
	})
	return pids
}

// Resend returns the step that puts a message into the mailboxes of pids again, nil if the first of them does not have
// it.
func (d *Domain) Resend(id int64, pids []int64) *schema.ResendInput {
	if len(pids) == 0 {
		return nil
	}
	box, _ := d.get(pids[0])
	m := box.find(id)
	if m == nil {
		return nil
	}
	again := &schema.ResendInput{PIDs: pids, Message: m.MailMessage, Text: string(m.Payload), Origin: m.origin}
	again.Message.Payload = nil
	return again
}

// find returns a message that is to be read, nil if it is not there.
func (b mailbox) find(id int64) *message {
	for _, list := range [...][]*message{b.urgent, b.normal} {
		if i := slices.IndexFunc(list, func(m *message) bool { return m.MsgID == id }); i >= 0 {
			return list[i]
		}
	}
	return nil
}

// unsend answers Ipc.Unsend.
func (d *Domain) unsend(call *kernel.Call, in *schema.UnsendInput) (schema.UnsendOutput, error) {
	out := schema.UnsendOutput{Taken: []int64{}, Read: []int64{}}
	for _, pid := range in.PIDs {
		box, _ := d.get(pid)
		if m := box.find(in.MsgID); m != nil && !past(m.ExpiresAtTick, call.Tick) {
			out.Taken = append(out.Taken, pid)
		} else {
			out.Read = append(out.Read, pid)
		}
	}
	if len(out.Taken) == 0 {
		return out, fault.UndoOvertaken.New("no mailbox has message %d unread any more: it was received, has expired, or its receiver has ended", in.MsgID).
			WithFix("it cannot be taken back").With("msg_id", strconv.FormatInt(in.MsgID, 10))
	}
	return out, nil
}

func (d *Domain) applyUnsend(e *kernel.Entry, in *schema.UnsendInput) {
	for _, pid := range kernel.Reply[schema.UnsendOutput](e, schema.IPCUnsend.Output()).Taken {
		box, _ := d.get(pid)
		drop := func(m *message) bool { return m.MsgID == in.MsgID }
		box.urgent, box.normal = remove(box.urgent, drop), remove(box.normal, drop)
		box.mortal = box.mortal && len(box.urgent)+len(box.normal) > 0
		d.boxes.Set(pid, box)
	}
}

// decideResend answers Ipc.Resend: the message gets into all of the mailboxes or into none.
func (d *Domain) decideResend(call *kernel.Call, in *schema.ResendInput) (ok schema.SuccessOutput, err error) {
	for _, pid := range in.PIDs {
		box, there := d.get(pid)
		why := ""
		switch {
		case !there:
			why = "is not there any more: its process has ended"
		case box.find(in.Message.MsgID) != nil:
			why = "has it already"
		case pid == kernel.Operator && box.fullOf(in.Origin, call.Tick, d.capacity), pid != kernel.Operator && box.full(call.Tick, d.capacity):
			why = "is full"
		case past(in.Message.ExpiresAtTick, call.Tick):
			why = "cannot have it again, as it has expired"
		}
		if why != "" {
			return ok, fault.UndoOvertaken.New("message %d was not put back: the mailbox of pid %d %s", in.Message.MsgID, pid, why).
				WithFix("send it again").With("pid", strconv.FormatInt(pid, 10))
		}
	}
	call.Wake(in.PIDs...)
	return schema.SuccessOutput{Success: true}, nil
}

func (d *Domain) applyResend(_ *kernel.Entry, in *schema.ResendInput) {
	m := &message{in.Message, in.Origin}
	m.Payload = schema.Value(in.Text)
	again := []*message{m}
	for _, pid := range in.PIDs {
		box, _ := d.get(pid)
		if m.Priority == urgent {
			box.urgent = inOrder(box.urgent, again)
		} else {
			box.normal = inOrder(box.normal, again)
		}
		box.mortal = box.mortal || m.ExpiresAtTick != nil
		d.boxes.Set(pid, box)
	}
}

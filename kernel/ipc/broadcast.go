package ipc

import (
	"fmt"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// everybody is the receiver of Syscall.SendMsg that means, from the operator, every process with a mailbox. From an
// agent it means the operator (PROTOCOL 6).
const everybody int64 = 0

// audience is the receivers of a broadcast, ascending. Those that governance excludes are only counted: the sender
// must not know them.
type audience struct {
	delivered []int64
	full      []int64
	denied    int
	rule      int // the first one that denied, from 1
}

func (d *Domain) audience(call *kernel.Call, intent string) audience {
	var a audience
	d.boxes.Scan(func(pid int64, box mailbox) bool {
		if pid == call.PID || pid == kernel.Operator || !d.reaches(call, pid) {
			return true
		}
		switch rule := d.denied(intent, call.PID, pid); {
		case rule > 0:
			if a.denied++; a.rule == 0 {
				a.rule = rule
			}
		case box.full(call.Tick, d.capacity):
			a.full = append(a.full, pid)
		default:
			a.delivered = append(a.delivered, pid)
		}
		return true
	})
	return a
}

// post has a message delivered to processes by a step: the reply need not name them, and may have no room to.
func post(call *kernel.Call, pids []int64) {
	call.Step(schema.IPCAddress.With(&schema.MailboxInput{PIDs: pids}))
	call.Wake(pids...)
}

// sendAll answers Syscall.SendMsg to everybody.
func (d *Domain) sendAll(call *kernel.Call, in *schema.SendMsgInput) (schema.SendMsgOutput, error) {
	if past(in.ExpiresAtTick, call.Tick) {
		return d.reply(in, expired, late(call, in)), nil
	}
	a := d.audience(call, said(in.Intent))
	switch {
	case len(a.delivered) > 0:
		post(call, a.delivered)
		return d.reply(in, delivered, ""), nil
	case len(a.full) > 0:
		return schema.SendMsgOutput{}, fault.IpcMailboxFull.New(
			"MAILBOX_FULL: all %d mailboxes that the message may go to hold %d messages, as many as they may", len(a.full), d.capacity).
			WithFix("send again once they have received some")
	case a.denied > 0:
		return d.reply(in, blocked, fmt.Sprintf(
			"governance denies it to all %d processes, rule %d of the configuration first", a.denied, a.rule)), nil
	}
	return schema.SendMsgOutput{}, fault.IpcNoMailbox.New("there is no mailbox but the sender's").WithFix("spawn a process with Syscall.Spawn first")
}

// broadcast answers Ipc.Broadcast. It succeeds even if no process gets the message.
func (d *Domain) broadcast(call *kernel.Call, in *schema.BroadcastInput) (schema.BroadcastOutput, error) {
	if err := sendable(in.Payload, in.Intent); err != nil {
		return schema.BroadcastOutput{}, err
	}
	a := d.audience(call, said(in.Intent))
	post(call, a.delivered)
	return schema.BroadcastOutput{Delivered: a.delivered, MailboxFull: a.full}, nil
}

func (d *Domain) applyBroadcast(e *kernel.Entry, in *schema.BroadcastInput) {
	d.last++
	d.deliver(e.Tick, newMessage(e, d.last, in.Intent, in.Payload), d.addressed)
	d.addressed = nil
}

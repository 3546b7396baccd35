package ipc

import (
	"fmt"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// maxDelivery is how many messages are pushed at once: what a subscriber that does not read may have outside of its
// mailbox, besides its socket buffer.
const maxDelivery = 32

// subscribe answers Ipc.Subscribe. A mailbox has one subscriber, since each of two would miss
// messages without noticing. A second one is refused rather than replacing the first, or another
// client of the same agent could cut it off unseen. Processes that share messages use Ipc.Receive.
func (d *Domain) subscribe(call *kernel.Call, in *schema.MailSubscribeInput) (schema.MailSubscribeOutput, error) {
	box, err := d.box(call)
	switch {
	case err != nil:
		return schema.MailSubscribeOutput{}, err
	case call.Message.Meta.IdempotencyKey != "":
		return schema.MailSubscribeOutput{}, fault.WireInvalidInput.New(
			"Invalid input: a subscription is its connection's, and cannot be had again from another").WithFix("leave out metadata.idempotencyKey")
	case box.subscriber != "":
		return schema.MailSubscribeOutput{}, fault.IpcFollowed.New(
			"the mailbox of %s is followed on connection %s already", mailboxOf(call.PID), box.subscriber).
			WithFix("end that one, or take messages with Ipc.Receive")
	}
	call.Follow(delivery(yes(in.Ack)))
	call.OnClose(back(call))
	return schema.MailSubscribeOutput{ReceiverPID: call.PID, Ack: yes(in.Ack)}, nil
}

// mailboxOf names a mailbox in errors.
func mailboxOf(pid int64) string {
	if pid == kernel.Operator {
		return "the operator"
	}
	return fmt.Sprintf("pid %d", pid)
}

// delivery is the question that the connection of a subscriber repeats.
func delivery(ack bool) schema.Request {
	return schema.IPCDeliver.With(&schema.MailDeliverInput{Max: maxDelivery, Ack: ack})
}

// back is the command that the end of a call's connection causes.
func back(call *kernel.Call) schema.Request {
	return schema.IPCReturn.With(&schema.MailReturnInput{PIDs: []int64{call.PID}, Conn: call.Caller.Conn})
}

func (d *Domain) applySubscribe(e *kernel.Entry, _ *schema.MailSubscribeInput) {
	if box, ok := d.get(e.PID); ok {
		box.subscriber = e.Conn
		d.boxes.Set(e.PID, box)
	}
}

// deliverNext answers Ipc.Deliver: it takes messages as a receive does, each as an event.
func (d *Domain) deliverNext(call *kernel.Call, in *schema.MailDeliverInput) (schema.ReceiveOutput, error) {
	box, err := d.box(call)
	if err != nil {
		return schema.ReceiveOutput{}, err
	}
	out := box.take(call, nil, in.Max)
	if len(out.Messages) == 0 {
		call.Park(kernel.Forever)
		return out, nil
	}
	for i := range out.Messages {
		m := &out.Messages[i]
		call.Emit(kernel.Event{Type: "Ipc.MessageDelivered", Data: m.AppendJSON(nil), Causation: m.Causation, Correlation: m.Correlation})
	}
	call.Follow(delivery(in.Ack))
	return out, nil
}

func (d *Domain) applyDeliver(e *kernel.Entry, in *schema.MailDeliverInput) {
	d.taken(e, nil, d.count(e, in.Max), in.Ack)
}

// giveBack answers Ipc.Return. It never fails: the mailbox may have been removed.
func giveBack(call *kernel.Call, in *schema.MailReturnInput) (schema.SuccessOutput, error) {
	call.Wake(in.PIDs...)
	return done(call, in)
}

func (d *Domain) applyReturn(_ *kernel.Entry, in *schema.MailReturnInput) {
	for _, pid := range in.PIDs {
		if box, ok := d.boxes.Get(pid); ok {
			d.boxes.Set(pid, box.back(in.Conn))
		}
	}
}

// ack answers Ipc.Ack. A second acknowledgement succeeds.
func (d *Domain) ack(call *kernel.Call, in *schema.MailAckInput) (schema.MailAckOutput, error) {
	box, err := d.box(call)
	if err != nil {
		return schema.MailAckOutput{}, err
	}
	_, ids := box.acknowledge(call.Tick, in.MsgIDs)
	return schema.MailAckOutput{Acknowledged: ids}, nil
}

// acknowledge returns the mailbox without the named messages that wait for an acknowledgement, and the numbers of
// those.
func (b mailbox) acknowledge(tick int64, ids []int64) (left mailbox, found []int64) {
	left = b
	for _, id := range ids {
		var ok bool
		if left, ok = left.acknowledged(tick, id); ok {
			found = append(found, id)
		}
	}
	return left, found
}

func (d *Domain) applyAck(e *kernel.Entry, in *schema.MailAckInput) {
	if box, ok := d.get(e.PID); ok {
		box, _ = box.acknowledge(e.Tick, in.MsgIDs)
		d.boxes.Set(e.PID, box)
	}
}

// Abandoned returns the commands by which recovery ends the connections of the previous run.
func (d *Domain) Abandoned() []schema.Request {
	var pids []int64
	d.boxes.Scan(func(pid int64, b mailbox) bool {
		if b.held() {
			pids = append(pids, pid)
		}
		return true
	})
	if pids == nil {
		return nil
	}
	return []schema.Request{schema.IPCReturn.With(&schema.MailReturnInput{PIDs: pids})}
}

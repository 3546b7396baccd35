package ipc

import (
	"fmt"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// maxDelivery is how many messages are taken at once to be pushed: what a subscriber that does not read may have outside
// of its mailbox, beside what its socket holds.
const maxDelivery = 32

// subscribe answers Ipc.Subscribe. A mailbox has one subscriber: of two, each would see a part, and neither could tell.
// A second one is refused rather than given the place of the first, or whoever may act as an agent would cut it off
// unseen. Messages are for Ipc.Receive to share out.
func (d *Domain) subscribe(call *kernel.Call, in *schema.MailSubscribeInput) (kernel.Result, error) {
	box, err := d.box(call)
	switch {
	case err != nil:
		return kernel.Result{}, err
	case call.Message.Meta.IdempotencyKey != "":
		return kernel.Result{}, schema.Errorf(schema.InvalidInput,
			"Invalid input: a subscription is its connection's, and cannot be had again from another: leave out metadata.idempotencyKey")
	case box.subscriber != "":
		return kernel.Result{}, schema.Errorf(schema.Conflict,
			"the mailbox of %s is followed on connection %s already: end that one, or take messages with Ipc.Receive", mailboxOf(call.PID), box.subscriber)
	}
	data := strconv.AppendInt([]byte(`{"receiver_pid":`), call.PID, 10)
	data = strconv.AppendBool(append(data, `,"ack":`...), yes(in.Ack))
	return kernel.Result{
		Data:    append(data, '}'),
		Lasting: &kernel.Lasting{Follow: delivery(yes(in.Ack)), End: back(call)},
	}, nil
}

// mailboxOf names whose mailbox one is.
func mailboxOf(pid int64) string {
	if pid == kernel.Operator {
		return "the operator"
	}
	return fmt.Sprintf("pid %d", pid)
}

// delivery is what the connection of a subscriber goes on with.
func delivery(ack bool) *schema.Request {
	next := schema.IPCDeliver.With(&schema.MailDeliverInput{Max: maxDelivery, Ack: ack})
	return &next
}

// back is what the end of a call's connection brings about.
func back(call *kernel.Call) *schema.Request {
	end := schema.IPCReturn.With(&schema.MailReturnInput{PIDs: []int64{call.PID}, Conn: call.Caller.Conn})
	return &end
}

// subscribed applies Ipc.Subscribe.
func (d *Domain) subscribed(call *kernel.Call) {
	if box, ok := d.get(call.PID); ok {
		box.subscriber = call.Caller.Conn
		d.boxes.Set(call.PID, box)
	}
}

// push answers Ipc.Deliver: it takes messages as a receive does, and each becomes an event.
func (d *Domain) push(call *kernel.Call, in *schema.MailDeliverInput) (kernel.Result, error) {
	box, err := d.box(call)
	if err != nil {
		return kernel.Result{}, err
	}
	data, n := box.take(call, nil, in.Max)
	if n == 0 {
		return kernel.Result{Wait: kernel.Forever}, nil
	}
	events := make([]kernel.Event, 0, n)
	box.each(call.Tick, nil, func(m *message) bool {
		events = append(events, kernel.Event{
			Type: "Ipc.MessageDelivered", Data: m.append(nil, call.PID), Causation: m.causation, Correlation: m.correlation,
		})
		return len(events) < int(n)
	})
	return kernel.Result{Data: data, Lasting: &kernel.Lasting{Events: events, Follow: delivery(in.Ack)}}, nil
}

// giveBack answers Ipc.Return, which never fails: there may be nothing left of the mailbox.
func (d *Domain) giveBack(in *schema.MailReturnInput) kernel.Result {
	return kernel.Result{Data: []byte(`{"success":true}`), Wakes: in.PIDs}
}

// givenBack applies Ipc.Return.
func (d *Domain) givenBack(in *schema.MailReturnInput) {
	for _, pid := range in.PIDs {
		if box, ok := d.boxes.Get(pid); ok {
			d.boxes.Set(pid, box.back(in.Conn))
		}
	}
}

// acknowledge answers Ipc.Ack. Acknowledging twice is fine.
func (d *Domain) acknowledge(call *kernel.Call, in *schema.MailAckInput) (kernel.Result, error) {
	box, err := d.box(call)
	if err != nil {
		return kernel.Result{}, err
	}
	_, ids := box.acknowledge(call.Tick, in.MsgIDs)
	return kernel.Result{Data: append(appendPIDs([]byte(`{"acknowledged":`), ids), '}')}, nil
}

// acknowledge returns the mailbox without the messages that are named and wait for that, and which they are.
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

// dealtWith applies Ipc.Ack.
func (d *Domain) dealtWith(call *kernel.Call, in *schema.MailAckInput) {
	if box, ok := d.get(call.PID); ok {
		box, _ = box.acknowledge(call.Tick, in.MsgIDs)
		d.boxes.Set(call.PID, box)
	}
}

// Abandoned are the commands that a start owes to the connections of the life before: all of them have ended.
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

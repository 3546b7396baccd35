package ipc

import (
	"fmt"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// everybody is the receiver of Syscall.SendMsg that stands, from the operator, for every process that has a mailbox. From an
// agent it is the operator itself (PROTOCOL 6).
const everybody int64 = 0

// audience is who a broadcast reaches, ascending. Those whom governance keeps it from are counted only: who
// they are is not for the sender to know.
type audience struct {
	delivered []int64
	full      []int64
	denied    int
	rule      int // the first that denied, from 1
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

// address is the step that a broadcast is applied by: its answer need not say who got it, and has no room for it.
func address(pids []int64) []schema.Request {
	return []schema.Request{schema.IPCAddress.With(&schema.MailboxInput{PIDs: pids})}
}

// sendAll answers Syscall.SendMsg to everybody.
func (d *Domain) sendAll(call *kernel.Call, in *schema.SendMsgInput) (kernel.Result, error) {
	if past(in.ExpiresAtTick, call.Tick) {
		return d.undelivered(in, expired, late(call, in)), nil
	}
	a := d.audience(call, said(in.Intent))
	switch {
	case len(a.delivered) > 0:
		return kernel.Result{
			Data:  append(d.reply(in, delivered), '}'),
			Steps: address(a.delivered),
			Wakes: a.delivered,
		}, nil
	case len(a.full) > 0:
		return kernel.Result{}, schema.Errorf(schema.QuotaExceeded,
			"MAILBOX_FULL: all %d mailboxes that the message may go to hold %d messages, as many as they may: send again once they have received some",
			len(a.full), d.capacity)
	case a.denied > 0:
		return d.undelivered(in, blocked, fmt.Sprintf(
			"governance denies it to all %d processes, rule %d of the configuration first", a.denied, a.rule)), nil
	}
	return kernel.Result{}, schema.Errorf(schema.NotFound, "there is no mailbox but the sender's: spawn a process with Syscall.Spawn first")
}

// broadcast answers Ipc.Broadcast. That nobody got the message is an answer too.
func (d *Domain) broadcast(call *kernel.Call, in *schema.BroadcastInput) (kernel.Result, error) {
	a := d.audience(call, said(in.Intent))
	data := appendPIDs([]byte(`{"delivered":`), a.delivered)
	data = appendPIDs(append(data, `,"mailbox_full":`...), a.full)
	return kernel.Result{
		Data:  append(data, '}'),
		Steps: address(a.delivered),
		Wakes: a.delivered,
	}, nil
}

func appendPIDs(dst []byte, pids []int64) []byte {
	dst = append(dst, '[')
	for i, pid := range pids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, pid, 10)
	}
	return append(dst, ']')
}

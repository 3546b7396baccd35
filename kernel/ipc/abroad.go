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

// Kernels are the other kernels of the cluster. Its methods are safe for concurrent use; only Decide calls them.
type Kernels interface {
	// Reach returns why no message can be sent to a kernel, nil if one can.
	Reach(kernel string) *fault.Fault
	// Carries returns why the bus does not carry a message, nil if it does.
	Carries(letter *schema.Letter) *fault.Fault
}

const (
	// maxAbroad bounds the payload of a message to another kernel in bytes, so that it fits a message of the bus.
	maxAbroad = 900_000
	// maxOperators is how many messages of the operator may wait for other kernels; an agent has as many as a mailbox.
	maxOperators = 1000
)

// Forward is the effect of a Syscall.SendMsg to another kernel.
type Forward struct {
	Letter *schema.Letter       // nil: it is not sent
	Answer schema.SendMsgOutput // the answer unless the other kernel has another one
}

// SeeKernels sets who the other kernels are. Call it before the domain decides anything.
func (d *Domain) SeeKernels(k Kernels) { d.kernels = k }

// Outbox returns the messages that are not settled, in the order in which they were sent. Call it before the kernel has the
// domain.
func (d *Domain) Outbox() (list []*schema.Letter) {
	d.outbox.Scan(func(_ int64, l *schema.Letter) bool {
		list = append(list, l)
		return true
	})
	return list
}

// sendAbroad answers Syscall.SendMsg to a process of another kernel. What its answer says is kept in the journal: the message
// is in the outbox if that is QUEUED.
func (d *Domain) sendAbroad(call *kernel.Call, in *schema.SendMsgInput) (out schema.SendMsgOutput, do *Forward, _ error) {
	to := *in.ReceiverKernel
	if d.kernels == nil {
		return out, nil, fault.ClusterOff.New("this kernel is in no cluster, so that it has no way to the kernel %q: set cluster.name and cluster.bus in its configuration", to)
	}
	if why := d.kernels.Reach(to); why != nil {
		return out, nil, why
	}
	if len(in.Payload) > maxAbroad {
		return out, nil, fault.ClusterTooLarge.New("the payload has %d bytes; to another kernel it may have %d", len(in.Payload), maxAbroad)
	}
	if past(in.ExpiresAtTick, call.Tick) {
		out = d.replyAbroad(in, expired, late(call, in))
		return out, &Forward{Answer: out}, nil
	}
	if rule := d.denied(said(in.Intent), call.PID, in.ReceiverPID); rule > 0 {
		out = d.replyAbroad(in, blocked, fmt.Sprintf("governance rule %d of the configuration denies it", rule))
		return out, &Forward{Answer: out}, nil
	}
	most := maxOperators
	if call.PID != kernel.Operator {
		most = d.capacity
	}
	if d.waiting[call.PID] >= most {
		return out, nil, fault.ClusterFull.New("%d messages of pid %d wait for other kernels, as many as may", most, call.PID)
	}
	l := newLetter(d.last+1, call.PID, &call.Message.Meta, in)
	if why := d.kernels.Carries(l); why != nil {
		return out, nil, why
	}
	out = d.replyAbroad(in, schema.MailQueued, "")
	return out, &Forward{Letter: l, Answer: out}, nil
}

func (d *Domain) replyAbroad(in *schema.SendMsgInput, status, reason string) schema.SendMsgOutput {
	out := d.reply(in, status, reason)
	out.ReceiverKernel = *in.ReceiverKernel
	return out
}

func newLetter(id, sender int64, meta *schema.Metadata, in *schema.SendMsgInput) *schema.Letter {
	return &schema.Letter{
		Posted: schema.Posted{
			MsgID: id, SenderPID: sender, ReceiverPID: in.ReceiverPID, Intent: said(in.Intent), Payload: bytes.Clone(in.Payload),
			Priority: said(in.Priority), Causation: meta.ID, Correlation: meta.Correlation,
		},
		Kernel: *in.ReceiverKernel, ExpiresAtTick: in.ExpiresAtTick,
	}
}

// queuedMember recognises the reply of a message that is in the outbox, as deliveredMember does that of a delivery.
const queuedMember = `"status":"` + schema.MailQueued + `"`

// applyAbroad puts a message that was numbered into the outbox.
func (d *Domain) applyAbroad(e *kernel.Entry, in *schema.SendMsgInput) {
	if bytes.Contains(e.Data, []byte(queuedMember)) {
		d.outbox.Set(d.last, newLetter(d.last, e.PID, e.Meta, in))
		d.waiting[e.PID]++
	}
}

// applySettle takes a message out of the outbox.
func (d *Domain) applySettle(_ *kernel.Entry, in *schema.SettleInput) {
	l, ok := d.outbox.Delete(in.MsgID)
	if !ok {
		return
	}
	if d.waiting[l.SenderPID]--; d.waiting[l.SenderPID] == 0 {
		delete(d.waiting, l.SenderPID)
	}
}

// mark is the last message of another kernel that a mailbox has taken. That kernel sends those to one mailbox in the order of
// their numbers, and the next once it knows the outcome of the one before: so a number up to the mark was taken.
type mark struct {
	Kernel   string `json:"kernel"`
	Instance string `json:"instance"`
	Epoch    int64  `json:"epoch"`
	MsgID    int64  `json:"msg_id"`
}

// covers reports whether a message was taken already.
func (m *mark) covers(in *schema.TakenInput) bool {
	return m.Kernel == in.Kernel && m.Instance == in.Instance && (m.Epoch > in.Epoch || m.Epoch == in.Epoch && m.MsgID >= in.MsgID)
}

// marked returns the marks with that of a message that is taken. It does not change marks.
func marked(marks []mark, in *schema.AcceptInput) []mark {
	fresh := make([]mark, 0, len(marks)+1)
	for _, m := range marks {
		if m.Kernel != in.Kernel {
			fresh = append(fresh, m)
		}
	}
	return append(fresh, mark{in.Kernel, in.Instance, in.Epoch, in.MsgID})
}

// endedMark is a mark of a mailbox whose process has ended.
type endedMark struct {
	PID int64 `json:"pid"`
	mark
}

// maxEnded is how many such marks of one kernel are kept. It asks again about at most a request of messages, soon after it
// is answered again.
const maxEnded = 1024

// remember keeps the marks of a mailbox that is closed.
func (d *Domain) remember(pid int64, marks []mark) {
	for _, m := range marks {
		of := func(e endedMark) bool { return e.Kernel == m.Kernel }
		kept := slices.Clone(d.ended)
		n := 0
		for _, e := range kept {
			if of(e) {
				n++
			}
		}
		if n >= maxEnded {
			at := slices.IndexFunc(kept, of)
			kept = slices.Delete(kept, at, at+1)
		}
		d.ended = append(kept, endedMark{pid, m})
	}
}

// hasTaken reports whether a mailbox has taken a message of another kernel, now or before its process ended.
func (d *Domain) hasTaken(in *schema.TakenInput) bool {
	box, _ := d.get(in.ReceiverPID)
	return slices.ContainsFunc(box.marks, func(m mark) bool { return m.covers(in) }) ||
		slices.ContainsFunc(d.ended, func(e endedMark) bool { return e.PID == in.ReceiverPID && e.covers(in) })
}

// answerTaken answers Ipc.Taken.
func (d *Domain) answerTaken(_ *kernel.Call, in *schema.TakenInput) (schema.TakenOutput, error) {
	return schema.TakenOutput{Taken: d.hasTaken(in)}, nil
}

// accept answers Ipc.Accept: it does what send does for a process of this kernel, and takes each message once.
func (d *Domain) accept(call *kernel.Call, in *schema.AcceptInput) (schema.AcceptOutput, error) {
	if d.hasTaken(in.Mark()) {
		return schema.AcceptOutput{Status: delivered, Known: true}, nil
	}
	if why := sendable(in.Payload, &in.Intent); why != nil {
		return schema.AcceptOutput{}, why
	}
	to := in.ReceiverPID
	box, ok := d.get(to)
	if !ok || !d.reaches(call, to) {
		return schema.AcceptOutput{}, fault.IpcNoMailbox.New("pid %d has no mailbox there: it has ended, or never existed, or is of another origin", to).
			With("pid", strconv.FormatInt(to, 10))
	}
	if rule := d.denied(in.Intent, call.PID, to); rule > 0 {
		return schema.AcceptOutput{Status: blocked, Reason: fmt.Sprintf("governance rule %d of the configuration there denies it", rule)}, nil
	}
	if in.TicksLeft != nil && *in.TicksLeft < 0 {
		return schema.AcceptOutput{Status: expired, Reason: "it expired before it arrived"}, nil
	}
	full := box.full(call.Tick, d.capacity)
	if to == kernel.Operator {
		full = box.fullOf(call.Origin, call.Tick, d.capacity)
	}
	if full {
		return schema.AcceptOutput{}, fault.IpcMailboxFull.New("MAILBOX_FULL: the mailbox of pid %d there holds %d messages, as many as it may", to, d.capacity).
			WithFix("send again once it has received some").With("pid", strconv.FormatInt(to, 10))
	}
	call.Wake(to)
	return schema.AcceptOutput{Status: delivered, MsgID: d.last + 1}, nil
}

func (d *Domain) applyAccept(e *kernel.Entry, in *schema.AcceptInput) {
	reply := kernel.Reply[schema.AcceptOutput](e, d.accepted)
	if reply.Status != delivered || reply.Known {
		return
	}
	d.last++
	m := &message{MailMessage: schema.MailMessage{
		MsgID: d.last, SenderPID: in.SenderPID, SenderKernel: in.Kernel, Intent: in.Intent, Payload: bytes.Clone(in.Payload),
		Priority: in.Priority, SentTick: e.Tick, Causation: in.Causation, Correlation: in.Correlation,
	}}
	if m.Priority == "" {
		m.Priority = normal
	}
	if in.TicksLeft != nil {
		last := e.Tick + *in.TicksLeft
		m.ExpiresAtTick = &last
	}
	if in.ReceiverPID == kernel.Operator {
		m.origin = e.Origin
	}
	d.deliver(e.Tick, m, []int64{in.ReceiverPID})
	if box, ok := d.get(in.ReceiverPID); ok {
		box.marks = marked(box.marks, in)
		d.boxes.Set(in.ReceiverPID, box)
	}
}

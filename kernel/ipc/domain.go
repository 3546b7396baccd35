// Package ipc keeps the mailboxes of processes (PROTOCOL 6).
package ipc

import (
	"slices"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// DefaultCapacity is the capacity of a mailbox in messages unless configured otherwise (PROTOCOL 6).
const DefaultCapacity = 50

// Outcomes of a message (PROTOCOL 6). A full mailbox is an error.
const (
	delivered = "DELIVERED"
	expired   = "EXPIRED"
	blocked   = "BLOCKED_BY_GOVERNANCE"
)

// Options configure mailboxes. Only Decide uses them: a replay does not depend on them.
type Options struct {
	Capacity int    // of a mailbox, in messages; 0: DefaultCapacity
	Rules    []Rule // governance, checked in this order
	// Processes tells the origin of a process: an agent reaches processes of its own origin. nil: it reaches all.
	// Only Decide reads it.
	Processes kernel.Processes
}

// Domain is the state machine of the mailboxes.
type Domain struct {
	kernel.Handlers
	capacity  int
	rules     []Rule
	processes kernel.Processes
	received  *schema.Type // what the domain decodes of its own replies
	accepted  *schema.Type // likewise
	kernels   Kernels      // nil: there are no others

	ended     []endedMark                       // of mailboxes that were closed, the oldest first; a change makes another slice
	boxes     *btree.Map[int64, mailbox]        // by PID
	last      int64                             // number of the latest message
	addressed []int64                           // receivers of the next broadcast, whose step has been applied; else nil
	outbox    *btree.Map[int64, *schema.Letter] // messages to other kernels that are not settled, by number
	waiting   map[int64]int                     // how many of them are of a process
}

var _ kernel.Domain = (*Domain)(nil)

// New returns a domain without mailboxes.
func New(options Options) *Domain {
	if options.Capacity == 0 {
		options.Capacity = DefaultCapacity
	}
	d := &Domain{
		capacity:  options.Capacity,
		rules:     slices.Clone(options.Rules),
		processes: options.Processes,
		received:  schema.TypeOf[counted](),
		accepted:  schema.TypeOf[schema.AcceptOutput](),
	}
	// What was delivered depended on the configuration of its time, so Apply takes it from the replies and steps.
	d.Handlers = kernel.Bind(schema.Ipc,
		kernel.PartialEffect(schema.SyscallSendMsg, d.sendMsg, d.applySend),
		kernel.Step(schema.SyscallSendMsg.End, kernel.End, nil),
		kernel.Step(schema.IPCAccept, d.accept, d.applyAccept),
		kernel.Question(schema.IPCTaken, d.answerTaken),
		kernel.Step(schema.IPCSettle, done[schema.SettleInput], d.applySettle),
		kernel.Command(schema.IPCBroadcast, d.broadcast, d.applyBroadcast),
		kernel.Command(schema.IPCReceive, d.receive, d.applyReceive),
		kernel.Command(schema.IPCSubscribe, d.subscribe, d.applySubscribe),
		kernel.Command(schema.IPCAck, d.ack, d.applyAck),
		kernel.Step(schema.IPCOpen, done[schema.MailboxInput], d.open),
		kernel.Step(schema.IPCClose, tell, d.close),
		kernel.Step(schema.IPCAddress, done[schema.MailboxInput], d.address),
		kernel.Step(schema.IPCDeliver, d.deliverNext, d.applyDeliver),
		kernel.Step(schema.IPCReturn, giveBack, d.applyReturn),
		kernel.Step(schema.IPCUnsend, d.unsend, d.applyUnsend),
		kernel.Step(schema.IPCResend, d.decideResend, d.applyResend),
	)
	d.Reset()
	return d
}

// Reset implements kernel.Domain.
func (d *Domain) Reset() {
	d.boxes = btree.NewMap[int64, mailbox](0)
	d.outbox = btree.NewMap[int64, *schema.Letter](0)
	d.waiting = make(map[int64]int)
	d.ended = nil
	d.last = 0
	d.addressed = nil
}

// Mailboxes returns the PIDs that have one, ascending, so that recovery can remove those of processes that do not
// exist.
func (d *Domain) Mailboxes() []int64 { return d.boxes.Keys() }

// get returns the mailbox of pid. The operator always has one, empty before the first message.
func (d *Domain) get(pid int64) (mailbox, bool) {
	box, ok := d.boxes.Get(pid)
	return box, ok || pid == kernel.Operator
}

// reaches reports whether a message of the call may be sent to pid.
func (d *Domain) reaches(call *kernel.Call, pid int64) bool {
	return d.processes == nil || call.PID == kernel.Operator || pid == kernel.Operator || kernel.Visible(d.processes, call, pid) != nil
}

// tell answers Ipc.Close: a call that waits at the mailbox must learn that no message will come.
func tell(call *kernel.Call, in *schema.MailboxInput) (schema.SuccessOutput, error) {
	call.Wake(in.PIDs...)
	return done(call, in)
}

// done answers a step that cannot fail.
func done[In any](*kernel.Call, *In) (schema.SuccessOutput, error) {
	return schema.SuccessOutput{Success: true}, nil
}

func (d *Domain) open(_ *kernel.Entry, in *schema.MailboxInput) {
	for _, pid := range in.PIDs {
		if _, ok := d.boxes.Get(pid); !ok {
			d.boxes.Set(pid, mailbox{})
		}
	}
}

func (d *Domain) close(_ *kernel.Entry, in *schema.MailboxInput) {
	for _, pid := range in.PIDs {
		if box, ok := d.boxes.Delete(pid); ok {
			d.remember(pid, box.marks)
		}
	}
}

func (d *Domain) address(_ *kernel.Entry, in *schema.MailboxInput) { d.addressed = in.PIDs }

// Package ipc keeps the mailboxes through which processes talk (PROTOCOL 6).
package ipc

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// DefaultCapacity is how many messages a mailbox holds unless configured otherwise (PROTOCOL 6).
const DefaultCapacity = 50

// What becomes of a message (PROTOCOL 6). One that finds the mailbox full is an error.
const (
	delivered = "DELIVERED"
	expired   = "EXPIRED"
	blocked   = "BLOCKED_BY_GOVERNANCE"
)

// Options are what the configuration says about mailboxes. They decide what is sent from now on, never what a replay
// makes of what was sent before.
type Options struct {
	Capacity int    // most messages of a mailbox; 0 is DefaultCapacity
	Rules    []Rule // governance, asked in this order
	// Processes says of which origin a process is: an agent reaches those of its own. Nil: each reaches all. It is read in
	// Decide alone.
	Processes kernel.Processes
}

// Domain is the state machine of the mailboxes.
type Domain struct {
	capacity  int
	rules     []Rule
	processes kernel.Processes
	forms     forms

	boxes     *btree.Map[int64, mailbox] // by PID
	last      int64                      // number of the newest message
	addressed []int64                    // who gets the next broadcast: its step has been applied, it has not; else nil
}

// forms describe what the domain reads back of what it has written.
type forms struct{ received, chunk *schema.Type }

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
		forms:     forms{received: schema.TypeOf[counted](), chunk: schema.TypeOf[chunk]()},
	}
	d.Reset()
	return d
}

// Reset implements kernel.Domain.
func (d *Domain) Reset() {
	d.boxes = btree.NewMap[int64, mailbox](0)
	d.last = 0
	d.addressed = nil
}

// Mailboxes returns the PIDs that have one, ascending: recovery takes away what belongs to nobody alive.
func (d *Domain) Mailboxes() []int64 { return d.boxes.Keys() }

// get returns the mailbox of pid. The operator has one, empty before the first message.
func (d *Domain) get(pid int64) (mailbox, bool) {
	box, ok := d.boxes.Get(pid)
	return box, ok || pid == kernel.Operator
}

// reaches reports whether a message of the call can be meant for pid.
func (d *Domain) reaches(call *kernel.Call, pid int64) bool {
	return d.processes == nil || call.PID == kernel.Operator || pid == kernel.Operator || kernel.Visible(d.processes, call, pid) != nil
}

// Decide answers the syscalls of schema.Ipc.
func (d *Domain) Decide(call *kernel.Call) (kernel.Result, error) {
	switch in := call.Input.(type) {
	case *schema.SendMsgInput:
		switch fault := cmp.Or(tooDeep(in.Payload), kernel.CheckName("intent", said(in.Intent))); {
		case fault != nil:
			return kernel.Result{}, fault
		case in.ReceiverPID == everybody && call.PID == kernel.Operator:
			return d.sendAll(call, in)
		}
		return d.send(call, in)
	case *schema.BroadcastInput:
		if fault := cmp.Or(tooDeep(in.Payload), kernel.CheckName("intent", said(in.Intent))); fault != nil {
			return kernel.Result{}, fault
		}
		return d.broadcast(call, in)
	case *schema.ReceiveInput:
		return d.receive(call, in)
	case *schema.MailSubscribeInput:
		return d.subscribe(call, in)
	case *schema.MailAckInput:
		return d.acknowledge(call, in)
	case *schema.MailDeliverInput:
		return d.push(call, in)
	case *schema.MailReturnInput:
		return d.giveBack(in), nil
	case *schema.MailboxInput:
		result := kernel.Result{Data: []byte(`{"success":true}`)}
		if call.Syscall.Type == typeClose {
			result.Wakes = in.PIDs // whoever waits there has to be told
		}
		return result, nil
	}
	return kernel.Result{}, fmt.Errorf("decide %s: no meaning for %T", call.Message.Type, call.Input)
}

// Apply changes the mailboxes as the answers say. What was delivered depended on the configuration of its day, so it is
// taken from there and from the steps, not worked out again.
func (d *Domain) Apply(call *kernel.Call) {
	switch in := call.Input.(type) {
	case *schema.SendMsgInput:
		d.sent(call, in)
	case *schema.BroadcastInput:
		d.last++
		d.deliver(call.Tick, newMessage(call, d.last, in.Intent, in.Payload), d.addressed)
		d.addressed = nil
	case *schema.ReceiveInput:
		d.received(call, in)
	case *schema.MailSubscribeInput:
		d.subscribed(call)
	case *schema.MailAckInput:
		d.dealtWith(call, in)
	case *schema.MailDeliverInput:
		d.taken(call, nil, d.count(call, in.Max), in.Ack)
	case *schema.MailReturnInput:
		d.givenBack(in)
	case *schema.MailboxInput:
		d.apply(call.Syscall.Type, in.PIDs)
	}
}

// The kernel's own commands, which share their data type.
const (
	typeOpen    = "Ipc.Open"
	typeClose   = "Ipc.Close"
	typeAddress = "Ipc.Address"
)

func (d *Domain) apply(typ string, pids []int64) {
	switch typ {
	case typeAddress:
		d.addressed = pids
	case typeOpen:
		for _, pid := range pids {
			if _, ok := d.boxes.Get(pid); !ok {
				d.boxes.Set(pid, mailbox{})
			}
		}
	case typeClose:
		for _, pid := range pids {
			d.boxes.Delete(pid)
		}
	}
}

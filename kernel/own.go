package kernel

import (
	"time"

	"github.com/promptware-os/pwos/schema"
)

// Own is a call that the kernel makes itself. It passes the gate and is journaled as a connection's call is.
type Own struct {
	Caller   Caller         // the zero Caller is the operator in the kernel's origin; Conn must be unique, and is chosen if it is empty
	Request  schema.Request // what is called
	Message  schema.Message // in place of Request: what a client would send
	Run      Runner         // for the effect of the call, in place of its row's runner; nil: that one
	Approval *Approval      // lets the call through if a rule asks about it; it must be used up; nil: there is none yet
	Waits    func()         // called in a domain's turn, each time that the call waits at the gate; nil: nothing is

	Causation, Correlation string // for the metadata of Request
}

// Answer is what an own call is answered.
type Answer struct {
	Data []byte // must not be changed
	Seq  uint64 // of the call's entry; 0: it has none
}

// Cause is what the kernel makes a command of its own for: a call, or an occasion such as a start.
type Cause struct {
	PID    int64  // that called
	Conn   string // in the journal
	Origin string
	Urgent bool // the command may use the journal's reserve

	ID, Correlation string // of the call's message, or empty
}

// AsCause returns the call as the cause of a command.
func (c *Call) AsCause() *Cause {
	return &Cause{
		PID: c.Caller.PID, Conn: c.Caller.Conn, Origin: c.Origin, Urgent: c.Urgent,
		ID: c.Message.Meta.ID, Correlation: c.Message.Meta.Correlation,
	}
}

// StepOf returns the call of a command that the kernel makes because of cause: with an id of its own, made at now, its data
// encoded for the journal.
func StepOf(cause *Cause, step schema.Request, data []byte, id string, now time.Time) Call {
	call := NewCall(Request{
		Caller:  Caller{PID: Operator, Conn: cause.Conn},
		Syscall: step.Row,
		Input:   step.Input,
		Message: schema.Message{
			Kind: step.Row.Kind, Type: step.Row.Type, Data: data,
			Meta: schema.Metadata{
				Present: true, ID: id, Timestamp: now.UnixMilli(),
				Correlation: cause.Correlation, Causation: cause.ID,
			},
		},
	}, Moment{Time: now.UnixMilli()})
	call.Origin, call.Urgent = cause.Origin, cause.Urgent
	return call
}

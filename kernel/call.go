package kernel

import (
	"log/slog"

	"github.com/promptware-os/pwos/schema"
)

// Operator is the PID of the kernel and its operator (PROTOCOL 4): it may do everything.
const Operator int64 = 0

// Caller is who sends on a connection. It is fixed when the connection is made.
type Caller struct {
	PID  int64
	Conn string // the connection's name in logs and journal, such as c-5
}

// Call is one frame on its way through the kernel. It has one owner at a time: the connection makes it, the domain
// fills in the outcome, the connection writes the answer.
type Call struct {
	Caller  Caller
	Message schema.Message
	Syscall *schema.Syscall // nil for a frame that never became a call
	Input   any             // the data, decoded as Syscall.Input says
	Time    int64           // when the domain took it up: Unix epoch, milliseconds

	// The outcome: one of the two.
	Data []byte
	Err  *schema.Error

	Proof schema.Proof
}

// LogValue names the call without its data: a payload in a log is a leak.
func (c *Call) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("type", c.Message.Type),
		slog.String("id", c.Message.Meta.ID),
		slog.String("conn", c.Caller.Conn),
		slog.Int64("pid", c.Caller.PID),
	)
}

// Result is what Decide computes.
type Result struct {
	Data     []byte // the reply's data, one JSON value
	Shutdown bool   // the kernel is to end in good order once the answer is on its way
}

// Domain is a deterministic state machine that owns some rows of the syscall table. See the package comment.
type Domain interface {
	// Decide computes the outcome of call, whose syscall is one of the domain's. An error that is no *schema.Error is
	// shown to the caller as an internal error without its text.
	Decide(call *Call) (Result, error)
	// Apply changes the state as the successfully decided call demands.
	Apply(call *Call)
}

package kernel

import (
	"log/slog"
	"time"

	"github.com/promptware-os/pwos/schema"
)

// Operator is the PID of the kernel and its operator (PROTOCOL 4): it may do everything.
const Operator int64 = 0

// Caller is who sends on a connection. It is fixed when the connection is made.
type Caller struct {
	PID    int64
	Conn   string // the connection's name in logs and journal, such as c-5
	Origin string // whose stored things the operator sees as itself; empty: those of the configuration
}

// Call is one frame on its way through the kernel. It has one owner at a time: the connection makes it, the domain
// fills in the outcome, the connection writes the answer.
type Call struct {
	Caller  Caller
	Message schema.Message
	Syscall *schema.Syscall // nil for a frame that never became a call
	Input   any             // the data, decoded as Syscall.Input says

	// What the shell adds before it asks the domain, and what the journal keeps.
	PID    int64  // the process that the call acts as: the caller, or whom the operator names
	Token  *Token // the token of PID, nil where it has none; the operator acting as itself needs none
	Origin string // whose stored things the call sees
	Tick   int64  // the kernel's tick
	Time   int64  // Unix epoch, milliseconds
	Final  bool   // the call has waited as long as it may: it must be given an outcome now

	// The outcome: one of the two.
	Data []byte
	Err  *schema.Error

	Claimed  bool // the call is the first with its idempotency key: what comes of it is the key's outcome
	Repeated bool // the outcome is that of an earlier call with the same idempotency key; nothing ran
	Proof    schema.Proof
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
	Data []byte // the reply's data, one JSON value

	// Steps are commands that must have taken effect, in this order, before the call itself is applied. They are the
	// kernel's own: they are journaled with the call as their cause, need no token, and must not fail.
	Steps []Step

	// Wait says that the call has no outcome yet: it is decided again when an applied call wakes its PID, and for the
	// last time after Wait, when it must have one. Zero is an outcome.
	Wait time.Duration

	Wakes    []int64 // PIDs whose waiting calls are worth deciding again once this call is applied
	Tick     int64   // the clock is to move on to this tick; 0 leaves it alone
	Shutdown bool    // the kernel is to end in good order once the answer is on its way
}

// Step is one command of the kernel to one of its domains.
type Step struct {
	Type  string // a row of the syscall table
	Input any    // as that row decodes it
}

package kernel

import (
	"context"
	"log/slog"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Operator is the PID of the kernel and its operator (PROTOCOL 4): it may do everything.
const Operator int64 = 0

// Caller is who sends on a connection. Only Process.Attach changes it, which is the operator's.
type Caller struct {
	PID    int64
	Conn   string // the connection's name in logs and journal, such as c-5
	Origin string // whose stored things the operator sees as itself; empty: those of the configuration
	Key    string // fingerprint of the key that it has shown; empty: none was asked for
	Role   string // of the operator's key, see inRole; empty: it may do everything
	Via    string // by which door it came, as context.via of a rule has it; empty: by a socket
	Kernel bool   // the kernel itself, which makes a call of its own in the name of PID
}

// Call is one frame on its way through the kernel. It has one owner at a time: the connection makes it, the domain
// fills in the outcome, the connection writes the answer.
type Call struct {
	Caller  Caller
	Message schema.Message
	Syscall *schema.Syscall // nil for a frame that never became a call
	Input   any             // the data, decoded as Syscall.Input says

	// What the shell adds before it asks the domain, and what the journal keeps.
	PID       int64        // the process that the call acts as: the caller, or the one that the operator names
	Token     *Token       // the token of PID, nil where it has none; the operator acting as itself needs none
	Origin    string       // whose stored things the call sees
	Tick      int64        // the kernel's tick
	Time      int64        // Unix epoch, milliseconds
	Urgent    bool         // it is taken on a full disk too: an urgent call of the operator's, or one that follows from it
	Final     bool         // the call has waited as long as it may: it must be given an outcome now
	Parked    bool         // the call has waited: its caller's bounds were checked before
	Lapsed    bool         // the question that the call waited for was not answered in time
	Gone      bool         // its connection has ended, and with it all waiting
	Begun     bool         // a step of it has been asked for, and may have been done
	Exhausted string       // the kind of budget of which it needs more than is left, as rules see it; "": none
	Inquiry   *Inquiry     // what somebody has to be asked before it, by the policy; nil: nothing
	Approval  *Approval    // what lets it through where somebody is asked; nil: nothing has yet
	Asks      *Call        // of a Capability.Check: the call that it asks about; nil: it gives no data
	Probe     *Probe       // it is only asked about: no stage has an effect; nil: it is made
	Refused   *fault.Fault // what its connection says against it; nil: nothing. The handler answers with it
	Throttled bool         // it was refused before anything else was judged, because its agent is over a bound: it has no entry

	// The outcome: one of the two.
	Data []byte
	Err  *fault.Fault
	Refs []byte // what the reply's metadata says of references in Data; nil: nothing

	Effect  *Work    // what it needs done outside the kernel before it is answered; nil: nothing
	Lasting *Lasting // what goes on after the answer; nil: nothing

	Claimed  bool   // the call is the first with its idempotency key: what comes of it is the key's outcome
	Repeated bool   // the outcome is that of an earlier call with the same idempotency key; nothing ran
	First    uint64 // that call's entry, as far as it was known when this one was decided
	Holds    any    // what the gate's budget stage keeps for it until it has an entry, or Paid; nil: nothing yet
	Cause    uint64 // of what a subscription goes on with: the entry of the subscription
	Proof    schema.Proof

	// Prepared is what the domain's Prepare has made of the input, or its Decide, for Apply; nil: nothing.
	Prepared any

	asked *Result // what its handler has asked for beside the reply; nil: nothing
	entry Entry   // for its handler's apply
}

// Paid stands in Holds of a call that is paid for: a subscription that goes on.
var Paid any = struct{}{}

// Intends reports whether a call that has an outcome is an intent: what comes of it is another entry (PROTOCOL 7).
func (c *Call) Intends() bool {
	return c.Syscall != nil && c.Syscall.Outcome != "" && c.Err == nil && !c.Repeated
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
	Data []byte // the reply's data, one JSON value; it may be other calls' too, and is not changed
	Refs []byte // what its metadata says of references in it; nil: nothing

	// Steps are commands that must have taken effect, in this order, before the call itself is applied. They are the
	// kernel's own: they are journaled with the call as their cause, need no token, and must not fail.
	Steps []schema.Request

	// Read computes the outcome instead, on a goroutine of its own: it takes long, and holds up no call of the domain. It may use
	// views that are safe for concurrent use, and the call, and ends soon after ctx does. It is for queries that are Alone, and for
	// what a subscription goes on with. News that come while it runs have a call that waits asked again.
	Read func(ctx context.Context) (Result, error)

	// More goes on with deciding instead, in the next turn, so that others get theirs: it takes long. The domain takes no other call
	// until it has an outcome.
	More func() (Result, error)

	// Wait says that the call has no outcome yet: it is decided again when an applied call wakes its PID, and for the
	// last time after Wait, when it must have one; one that follows waits without end. Zero is an outcome.
	Wait time.Duration

	Effect *Work // what is to be done outside the kernel once the call is on disk, before it is answered

	Wakes    []int64 // PIDs whose waiting calls are worth deciding again once this call is applied
	Tick     int64   // the clock is to move on to this tick; 0 leaves it alone
	Shutdown bool    // the kernel is to end in good order once the answer is on its way

	Lasting *Lasting // what goes on after the answer; nil: nothing
}

// Lasting is what a call leaves behind with its connection.
type Lasting struct {
	// Follow is a command or query of the kernel's own that the connection goes on with, on behalf of the call's PID, for as
	// long as it lasts: a subscription. It may wait without end, and is asked again when an applied call wakes its PID, a
	// query after every command of its domain. Its outcome has events, which are pushed, and the next Follow. An error ends
	// it. A query is not journaled: it says again what the journal has.
	Follow *schema.Request

	// Events are what an outcome of Follow has to tell.
	Events []Event

	// End is a command of the kernel's own that is run once the connection has ended, or Follow has. Of several with the same
	// type and PID the last counts.
	End *schema.Request
}

// Event is a message of the kernel that nobody asked for (MESSAGE 4.2.3).
type Event struct {
	Type        string // in the past tense
	Data        []byte // one JSON value
	Causation   string // the message that brought it about
	Correlation string
}

// Forever is the Wait of a call that follows.
const Forever = time.Duration(1<<63 - 1)

// MaxData is how many bytes the data of a reply may have, so that its line stays within 16,384 bytes (PROTOCOL 2)
// with an envelope of ordinary length. A list that would be longer is cut off.
const MaxData = 15_000

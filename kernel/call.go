package kernel

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// Operator is the PID of the kernel and its operator (PROTOCOL 4): it may do everything.
const Operator int64 = 0

// Caller is the identity of a connection. Only Process.Attach changes it, on the operator's connections.
type Caller struct {
	PID    int64
	Conn   string // the connection's name in logs and journal, such as c-5
	Origin string // of the stored things that the operator sees; empty: the configuration's
	Key    string // fingerprint of the key that it logged in with, or empty
	Role   string // of the operator's key, see inRole; empty: unlimited
	Via    string // the door it came by, context.via in rules; empty: a socket
	Kernel bool   // the kernel itself, which makes a call of its own for PID
}

// ViaCluster is the Via of calls for another kernel.
const ViaCluster = "cluster"

// Call is one frame on its way through the kernel: what is asked, what the gate decides, and its outcome. One actor owns
// it at a time: the connection makes it, the domain decides it and fills in the outcome, the connection writes the answer.
// NewCall makes one.
type Call struct {
	Request
	Decision
	Outcome
}

// NewCall returns a call at a moment: Undecided for a frame, whose domain sets it.
func NewCall(r Request, at Moment) Call { return Call{Request: r, Decision: Decision{Moment: at}} }

// Request is what is asked of the kernel.
type Request struct {
	Caller  Caller
	Message schema.Message
	Syscall *schema.Syscall // nil for a frame that could not be decoded
	Input   any             // the data, decoded as Syscall.Input says

	Cause   uint64       // of a question of a subscription: seq of the subscription's entry
	Asks    *Call        // of a Capability.Check with data: the call that it asks about
	Probe   *Probe       // it is only asked about: no stage has an effect; nil: it is made
	Refused *fault.Fault // why its connection refuses it, which its handler answers; nil: it does not

	// Progress pushes an event about the progress of a query that reads on a goroutine; nil: the caller has not asked
	// for that. It may be called until the read returns.
	Progress func(Event)
}

// Moment is the kernel's clock when a call is decided.
type Moment struct {
	Tick int64
	Time int64 // Unix epoch, milliseconds
}

// Undecided is the moment of a frame that has not reached its domain.
var Undecided Moment

// Decision is what the gate and the domain find out about a call before its handler runs. The journal keeps the first part.
type Decision struct {
	PID    int64  // the process that the call acts as: the caller, or the one that the operator names
	Origin string // of the stored things that the call sees
	Moment

	Token     *Token    // of PID, nil if it has none; the operator acting as itself needs none
	Urgent    bool      // it may use the journal's reserve: an urgent call of the operator, or one caused by such a call
	Throttled bool      // it has no entry: its agent exceeds a bound, or no majority of the bus acknowledges entries
	Exhausted string    // the kind of budget that the call exceeds, as rules see it, or ""
	Inquiry   *Inquiry  // the policy's question about it, or nil
	Approval  *Approval // lets it through although a rule asks, or nil
	Holds     any       // what the budget stage reserves for it until it has an entry, or Paid; or nil
	Waited
}

// Waited is what a call that has waited brings to its next decision.
type Waited struct {
	Final        bool // the call has waited as long as it may: it must get an outcome now
	Parked       bool // the call has waited: the bounds of its caller were checked before
	Lapsed       bool // the question that the call waited for was not answered in time
	Disconnected bool // its connection has closed, so it must not wait
	Begun        bool // a step of it was sent, and may have taken effect
}

// Outcome is the result of a call: one of Data and Err, and what belongs to it.
type Outcome struct {
	Data []byte
	Err  *fault.Fault
	Refs []byte // the references in Data, for the reply's metadata, or nil

	Effect  *Work    // to be done outside the kernel before it is answered; nil: nothing
	Lasting *Lasting // that continues after the answer; nil: nothing

	Claimed  bool   // the call is the first with its idempotency key: its outcome is the key's
	Repeated bool   // the outcome is that of an earlier call with the same idempotency key; nothing ran
	First    uint64 // seq of that call's entry, if it was known when this one was decided
	Proof    schema.Proof

	// Prepared is what the domain's Prepare or Decide has computed from the input, for Apply; nil: nothing.
	Prepared any

	asked *Result // what its handler has asked for besides the reply; nil: nothing
	entry Entry   // for its handler's apply
}

// Microseconds returns a latency in microseconds, rounded up.
func Microseconds(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// Paid in Holds marks a call that costs nothing more: a question of a subscription.
var Paid any = struct{}{}

// Intends reports whether a decided call is an intent, whose outcome is another entry (PROTOCOL 7).
func (c *Call) Intends() bool {
	return c.Syscall != nil && c.Syscall.Outcome != "" && c.Err == nil && !c.Repeated && leaves(c.Input)
}

// Answered returns what the caller gets: a reply, or an error. It is the outcome, except where a refusal is answered with a
// decision.
func (c *Call) Answered() ([]byte, *fault.Fault) {
	if in, ok := c.Input.(schema.Deciding); ok && c.Err != nil {
		if decision := in.Refused(c.Err); decision != nil {
			return decision, nil
		}
	}
	return c.Data, c.Err
}

// leaves reports whether a call with an input has an effect outside the kernel, where its row has an Outcome.
func leaves(input any) bool {
	in, partial := input.(interface{ Abroad() bool })
	return !partial || in.Abroad()
}

// LogValue names the call without its data, which must not be logged.
func (c *Call) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("type", c.Message.Type),
		slog.String("id", c.Message.Meta.ID),
		slog.String("conn", c.Caller.Conn),
		slog.Int64("pid", c.Caller.PID),
	)
}

// MaxData bounds the data of a reply in bytes, so that its line stays within 16,384 bytes (PROTOCOL 2) with an
// envelope of usual length. A longer list is cut off.
const MaxData = 15_000

// Invalid returns a fault of the named member of the data, for a rule that its schema cannot express (PROTOCOL 3:
// 422).
func Invalid(field, format string, args ...any) *fault.Fault {
	return fault.WireInvalidInput.New("Invalid input: "+field+" "+format, args...).At(field)
}

// CheckName refuses a name with a character that people cannot see. It is for new names only: names from before it
// can still be read and removed.
func CheckName(field, name string) error {
	for _, r := range name {
		if quote.Hidden(r) {
			return Invalid(field, "must not have the character %U, which is not visible or changes how the text around it is shown", r).WithFix("leave it out")
		}
	}
	return nil
}

// numbered formats a PID or a tick for the details of a fault.
func numbered(n int64) string { return strconv.FormatInt(n, 10) }

// units formats an amount as people do: 1000000, not 1e+06.
func units(amount float64) string { return strconv.FormatFloat(amount, 'f', -1, 64) }

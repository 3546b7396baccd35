package kernel

import (
	"context"
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

// Call is one frame on its way through the kernel. One actor owns it at a time: the connection makes it, the domain
// fills in the outcome, the connection writes the answer.
type Call struct {
	Caller  Caller
	Message schema.Message
	Syscall *schema.Syscall // nil for a frame that could not be decoded
	Input   any             // the data, decoded as Syscall.Input says

	// Filled in by the gate, and kept by the journal.
	PID          int64        // the process that the call acts as: the caller, or the one that the operator names
	Token        *Token       // of PID, nil if it has none; the operator acting as itself needs none
	Origin       string       // of the stored things that the call sees
	Tick         int64        // the kernel's tick
	Time         int64        // Unix epoch, milliseconds
	Urgent       bool         // it may use the journal's reserve: an urgent call of the operator, or one caused by such a call
	Final        bool         // the call has waited as long as it may: it must get an outcome now
	Parked       bool         // the call has waited: the bounds of its caller were checked before
	Lapsed       bool         // the question that the call waited for was not answered in time
	Disconnected bool         // its connection has closed, so it must not wait
	Begun        bool         // a step of it was sent, and may have taken effect
	Exhausted    string       // the kind of budget that the call exceeds, as rules see it, or ""
	Inquiry      *Inquiry     // the policy's question about it, or nil
	Approval     *Approval    // lets it through although a rule asks, or nil
	Asks         *Call        // of a Capability.Check with data: the call that it asks about
	Probe        *Probe       // it is only asked about: no stage has an effect; nil: it is made
	Refused      *fault.Fault // why its connection refuses it, which its handler answers; nil: it does not
	Throttled    bool         // it has no entry: its agent exceeds a bound, or no majority of the bus acknowledges entries

	// The outcome: one of Data and Err.
	Data []byte
	Err  *fault.Fault
	Refs []byte // the references in Data, for the reply's metadata, or nil

	Effect  *Work    // to be done outside the kernel before it is answered; nil: nothing
	Lasting *Lasting // that continues after the answer; nil: nothing

	Claimed  bool   // the call is the first with its idempotency key: its outcome is the key's
	Repeated bool   // the outcome is that of an earlier call with the same idempotency key; nothing ran
	First    uint64 // seq of that call's entry, if it was known when this one was decided
	Holds    any    // what the budget stage reserves for it until it has an entry, or Paid; or nil
	Cause    uint64 // of a question of a subscription: seq of the subscription's entry
	Proof    schema.Proof

	// Prepared is what the domain's Prepare or Decide has computed from the input, for Apply; nil: nothing.
	Prepared any

	// Progress pushes an event about the progress of a query that reads on a goroutine; nil: the caller has not asked
	// for that. It may be called until the read returns.
	Progress func(Event)

	asked *Result // what its handler has asked for besides the reply; nil: nothing
	entry Entry   // for its handler's apply
}

// Own is a call that the kernel makes itself. It passes the gate and is journaled as a connection's call is.
type Own struct {
	Caller  Caller         // the zero Caller is the operator in the kernel's origin; Conn must be unique, and is chosen if it is empty
	Request schema.Request // what is called
	Message schema.Message // in place of Request: what a client would send
	Run     Runner         // for the effect of the call, in place of its row's runner; nil: that one
	Waits   func()         // called in a domain's turn, each time that the call waits at the gate; nil: nothing is

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
	return Call{
		Caller:  Caller{PID: Operator, Conn: cause.Conn},
		Syscall: step.Row,
		Input:   step.Input,
		Origin:  cause.Origin,
		Urgent:  cause.Urgent,
		Time:    now.UnixMilli(),
		Message: schema.Message{
			Kind: step.Row.Kind, Type: step.Row.Type, Data: data,
			Meta: schema.Metadata{
				Present: true, ID: id, Timestamp: now.UnixMilli(),
				Correlation: cause.Correlation, Causation: cause.ID,
			},
		},
	}
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

// Result is what Decide computes.
type Result struct {
	Data []byte // the reply's data, one JSON value; other calls may share it, so it must not be changed
	Refs []byte // the references in it, for the reply's metadata, or nil

	// Steps are commands that must take effect, in this order, before the call itself is applied. They are the
	// kernel's own: they are journaled with the call as their cause, need no token, and must not fail.
	Steps []schema.Request

	// Read computes the outcome on a goroutine instead, because it takes long; other calls of the
	// domain run meanwhile. It may use the call, and views that are safe for concurrent use, and
	// must end soon after ctx does. It is for queries that run alone, and for questions of
	// subscriptions. If the state changes while it runs, a waiting call is asked again.
	Read func(ctx context.Context) (Result, error)

	// More continues the decision in the next turn instead, because it takes long. The domain decides no other call
	// until this one has an outcome.
	More func() (Result, error)

	// Wait says that the call has no outcome yet: it is decided again when an applied call wakes its PID, and for the
	// last time after Wait, when it must have one; a question of a subscription waits without limit. Zero means that
	// there is an outcome.
	Wait time.Duration

	Effect *Work // to be done outside the kernel once the call is on disk, before it is answered

	Wakes    []int64 // PIDs whose waiting calls are decided again once this call is applied
	Tick     int64   // the clock moves to this tick; 0: it does not
	Shutdown bool    // the kernel ends cleanly after the answer

	Lasting *Lasting // that continues after the answer; nil: nothing
}

// Lasting is the part of a call that continues on its connection after the answer.
type Lasting struct {
	// Follow is a command or query of the kernel's own that the connection repeats for the call's PID as long as the
	// connection lasts: a subscription. It may wait without limit, and is asked again when an applied call wakes its
	// PID, a query after every command of its domain. Its outcome has events, which are pushed, and the next Follow.
	// An error ends it. A query is not journaled: it repeats what the journal has.
	Follow *schema.Request

	// Events are pushed; they are part of an outcome of Follow.
	Events []Event

	// End is a command of the kernel's own that is made once the connection, or Follow, has ended. Of several with
	// the same type and PID the last counts.
	End *schema.Request
}

// Event is a message of the kernel that is no answer (MESSAGE 4.2.3).
type Event struct {
	Type        string // in the past tense
	Data        []byte // one JSON value
	Causation   string // id of the message that caused it
	Correlation string
}

// Forever is the Wait of a question of a subscription.
const Forever = time.Duration(1<<63 - 1)

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

package kernel

import (
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Domain is a deterministic state machine that owns some rows of the syscall table. See the package comment. Decide and Apply are
// those of its [Handlers].
type Domain interface {
	// Decide computes the outcome of call, whose syscall is one of the domain's. It changes nothing. An error that is no
	// *fault.Fault is shown to the caller as an internal error without its text. It may be asked again for a call that
	// waits.
	Decide(call *Call) (Result, error)

	// Apply changes the state as a successfully decided command demands: a pure function of the state and of what the
	// journal keeps of the call (Input, PID, Origin, Tick, Time, Data, the message's metadata, the connection's name), of which
	// Prepared is made too. It cannot fail and reads nothing else: not the token, not the views.
	Apply(call *Call)

	// Snapshot returns a function that writes the present state as chunks of bytes. The function may be called later, on
	// another goroutine, and at most once; it writes the state as it was when Snapshot was called. Snapshot itself must
	// be quick.
	Snapshot() func(write func(chunk []byte) error) error

	// Reset returns to the empty state.
	Reset()

	// Restore adds a chunk of a snapshot, in the order in which they were written, to an empty state.
	Restore(chunk []byte) error
}

// Preparer is a domain some of whose calls bring what takes long to read.
type Preparer interface {
	// Prepare does beforehand what of a call's Decide and Apply needs nothing but the call's input, and leaves it in call.Prepared. Any
	// goroutine may run it, beside all else. Where it was not run, as at a replay, they do that themselves.
	Prepare(call *Call)
}

// Repeater is a domain whose calls have effects that a repetition, by its idempotency key, must not be answered before.
type Repeater interface {
	// Repeat returns what a command that succeeded before may have to wait for still, nil where that is nothing. data is what it
	// was answered. It changes nothing, and nothing is done twice.
	Repeat(call *Call, data []byte) *Work
}

// Publisher is a domain that others have a view of. What it applied becomes visible to them when the shell calls Publish:
// after each batch that it applied, once the batch is on its way to the journal, so that whatever others decide on the
// strength of it stands behind it there. Decide of the domain itself sees its own state at once. After Reset, Restore or
// a replay one Publish makes the view complete.
type Publisher interface {
	Publish()
}

// Tokens is a view of the capability registry. It is safe for concurrent use and never waits.
type Tokens interface {
	// Token returns the token of pid, nil where it has none, with those of the granters above it as they were at the same
	// moment. Tokens are immutable.
	Token(pid int64) *Token
}

// Processes is a view of the process table. It is safe for concurrent use and never waits.
type Processes interface {
	// Process returns the descriptor of pid, nil where there never was one. Descriptors are immutable.
	Process(pid int64) *schema.Descriptor
}

// Identities is a view of what the processes have adopted. It is safe for concurrent use and never waits.
type Identities interface {
	// Adopted returns the identity of pid, nil where it has none: the base of its relative names (PROTOCOL 5). The operator
	// has one in each origin; of a process the origin is known. Identities are immutable.
	Adopted(pid int64, origin string) *schema.Identity
}

// Registry is a view of the syscalls that were registered. It is safe for concurrent use and never waits.
type Registry interface {
	// Registered returns what is registered under a name in an origin, nil where nothing is. It is immutable.
	Registered(origin, name string) *schema.Registration
	// RegisteredIn returns the names of all that is registered in an origin, in any order.
	RegisteredIn(origin string) []string
}

// Known tells the syscalls that are registered in an origin, as far as the view is there. Paths are granted as such.
func Known(r Registry, origin string) func(name string) bool {
	return func(name string) bool {
		return r != nil && !schema.UserSpace(name) && r.Registered(origin, name) != nil
	}
}

// Names is a view of what can be named (PROTOCOL 5, FileSystem). It never changes, opens nothing and never waits.
type Names interface {
	// Resolve returns the canonical form of what name means beside base, which is a name itself, "" where there is none. A name
	// that means nothing is an InvalidInput; one that nothing holds is a NotFound.
	Resolve(name, base string) (string, *fault.Fault)

	// Base returns what names of a process stand beside that gives no base: the identity that it has adopted in its origin, ""
	// where there is none.
	Base(pid int64, origin string) string
}

// Work is what a call needs done outside the kernel. The shell begins it once the entry of the call is on disk, so that
// nothing is ever found in the world that the journal knows nothing of, and keeps the answer back until it is done. What
// comes of it is journaled by commands of the kernel's own; a replay does nothing of the kind.
type Work struct {
	Start *Program // a program that is to be started
	Stop  []int64  // processes of whose programs nothing may be left
	Halt  []int64  // processes whose programs are to be stopped where they are
	On    bool     // those are; else they are to go on
	Await int64    // a process whose program may be starting: that it has begun, or failed to, is waited for; 0: none

	// Run is what the runner of the call's syscall is to do; nil: nothing. The entry of the call is then the intent alone.
	// What comes of it is the input of the syscall's Outcome, and the answer to that is the answer to the call.
	Run any
}

// Invocation is what the call of a registered syscall needs done. Its runner answers one JSON value.
type Invocation struct {
	Origin string
	*schema.Registration
	Data     schema.Value
	Describe bool // its registration is all that is asked for
}

// begun is the outcome of an intent, which nobody but the journal sees.
var begun = schema.Value(`{"begun":true}`)

// Program is what a process runs, and what its earlier ends count for.
type Program struct {
	PID      int64
	AgentID  string
	Origin   string
	Spec     schema.Program
	Restarts int64
	Faults   int64 // in a row
	Quick    int64 // early ends in a row
}

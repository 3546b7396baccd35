package kernel

import (
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Domain is a deterministic state machine that owns some rows of the syscall table; see the package comment. Its
// [Handlers] implement Decide and Apply.
type Domain interface {
	// Decide computes the outcome of a call of one of the domain's syscalls. It changes nothing. For an error that is
	// no *fault.Fault the caller gets an internal error without its text. A call that waits is decided again.
	Decide(call *Call) (Result, error)

	// Apply changes the state by a successfully decided command. It is a pure function of the
	// state, of what the journal keeps of the call (Input, PID, Origin, Tick, Time, Data, the
	// message's metadata, the connection's name), and of what Prepare derives from that. It cannot
	// fail and reads nothing else: no token, no view.
	Apply(call *Call)

	// Snapshot returns a function that writes the present state as chunks of bytes. The function may be called later,
	// on another goroutine, at most once; it writes the state as it was when Snapshot was called. Snapshot itself
	// must be quick.
	Snapshot() func(write func(chunk []byte) error) error

	// Reset returns to the empty state.
	Reset()

	// Restore adds a chunk of a snapshot to an empty state. Chunks come in the order in which they were written.
	Restore(chunk []byte) error
}

// Preparer is a domain that can do a slow part of some calls beforehand.
type Preparer interface {
	// Prepare does the part of Decide and Apply that depends on the call's input only, and stores it in
	// call.Prepared. Any goroutine may run it at any time. If it was not run, as in a replay, Decide and Apply do
	// that part themselves.
	Prepare(call *Call)
}

// Repeater is a domain of commands with effects: a repeated idempotency key must not be answered before they are
// done.
type Repeater interface {
	// Repeat returns what a command that succeeded before may still have to wait for, nil if nothing. data is its
	// answer. It changes nothing, and nothing is done twice.
	Repeat(call *Call, data []byte) *Work
}

// Publisher is a domain that others have a view of. Other domains see a change when the actor calls Publish: after
// each batch that the domain applied, once the batch has been sent to the journal, so that what others decide because
// of it has a later entry. Decide of the domain itself sees its state at once. After Reset, Restore or a replay one
// Publish makes the view complete.
type Publisher interface {
	Publish()
}

// Tokens is a view of the capability registry. It is safe for concurrent use and never blocks.
type Tokens interface {
	// Token returns the token of pid, linked to those of its granters as they were at the same
	// moment, or nil. Tokens are immutable.
	Token(pid int64) *Token
}

// Processes is a view of the process table. It is safe for concurrent use and never blocks.
type Processes interface {
	// Process returns the descriptor of pid, nil if it never existed. Descriptors are immutable.
	Process(pid int64) *schema.Descriptor
}

// Identities is a view of the identities that processes have adopted. It is safe for concurrent use and never blocks.
type Identities interface {
	// Adopted returns the identity of pid, the base of its relative names (PROTOCOL 5), or nil. The
	// operator has one in each origin; a process's origin is known. Identities are immutable.
	Adopted(pid int64, origin string) *schema.Identity
}

// Registry is a view of the registered syscalls. It is safe for concurrent use and never blocks.
type Registry interface {
	// Registered returns the registration of a name in an origin, nil if there is none. It is immutable.
	Registered(origin, name string) *schema.Registration
	// RegisteredIn returns the names of all registrations in an origin, in any order.
	RegisteredIn(origin string) []string
}

// Known returns a function that finds the syscalls registered in an origin; without a registry there are none. Paths
// are granted as such.
func Known(r Registry, origin string) func(name string) bool {
	return func(name string) bool {
		return r != nil && !schema.UserSpace(name) && r.Registered(origin, name) != nil
	}
}

// Names is a view of the name space (PROTOCOL 5, FileSystem). It never changes, does no I/O and never blocks.
type Names interface {
	// Resolve returns the canonical form of name relative to base, which is a name itself, "" if there is none. A
	// name without meaning gives an InvalidInput; one that names nothing gives a NotFound.
	Resolve(name, base string) (string, *fault.Fault)

	// Base returns the base of relative names of a process: the identity that it has adopted in its origin, "" if it
	// has none.
	Base(pid int64, origin string) string
}

// Work is what a call needs done outside the kernel. It begins once the entry of the call is on disk, so that no
// effect exists that the journal does not know, and the answer waits until it is done. Its outcome is journaled by
// commands of the kernel's own; a replay does no work.
type Work struct {
	Start *Program // a program to start
	Stop  []int64  // processes whose programs must have ended
	Halt  []int64  // processes whose programs are paused or continued
	On    bool     // they are paused; else continued
	Await int64    // a process whose program may be starting: wait until that has succeeded or failed; or 0

	// Run is the input of the syscall's runner; nil: it has none. The call's entry is then the intent only. The
	// outcome is the input of the syscall's Outcome row, whose answer answers the call.
	Run any
}

// Invocation is the work of a call of a registered syscall. Its runner answers one JSON value.
type Invocation struct {
	Origin string
	*schema.Registration
	Data     schema.Value
	Describe bool // only its registration is asked for
}

// begun is the outcome of an intent, which only the journal sees.
var begun = schema.Value(`{"begun":true}`)

// Program is what a process runs, and its count of earlier faults.
type Program struct {
	PID      int64
	AgentID  string
	Origin   string
	Spec     schema.Program
	Restarts int64
	Faults   int64 // in a row
	Quick    int64 // early ends in a row
}

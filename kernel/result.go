package kernel

import (
	"context"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

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
	News    News     // for calls that wait in other domains, once this one is applied
}

// News is what a change means for calls that wait elsewhere.
type News struct {
	Resumed  bool    // a process runs again
	Exited   []int64 // PIDs of processes that have ended
	Callable bool    // what can be called has changed
}

// Add adds other news.
func (n *News) Add(other News) {
	n.Resumed, n.Callable = n.Resumed || other.Resumed, n.Callable || other.Callable
	n.Exited = append(n.Exited, other.Exited...)
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

// ErrStopping cancels what runs outside the kernel when the kernel ends.
var ErrStopping = fault.KernelStopping.New("the kernel is shutting down")

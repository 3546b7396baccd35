package actors

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/effect/provide"
	"github.com/promptware-os/pwos/effect/refer"
	"github.com/promptware-os/pwos/internal/pace"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/budget"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/schema"
)

// Kernel is the root of the actors: it starts the domains and the audit log, serves connections, and shuts everything down
// in order.
type Kernel struct {
	log *slog.Logger
	tree
	authority
	ledger
	condition
	outside
	lifetime
}

// tree has the actors.
type tree struct {
	system  *actor.ActorSystem
	root    *actor.RootContext
	loop    *loop
	domains map[schema.Domain]*actor.PID
	names   []schema.Domain                 // of the domains, without the actor that appends to the journal
	states  map[schema.Domain]kernel.Domain // read after their actors have stopped
	audit   *actor.PID                      // appends to the journal; the domain schema.Audit answers queries about it
	auditor *audit                          // read after its actor has stopped
	agents  *actor.PID                      // carries out the effects of calls on programs
}

// authority says who may do what.
type authority struct {
	tokens     kernel.Tokens
	processes  kernel.Processes
	registry   kernel.Registry
	origin     string // of the operator
	readOrigin func(string) (string, error)
	gate       kernel.Gate
	clock      *clock
	accounts   *accounts
}

// ledger is what is known of calls, beside the states of domains.
type ledger struct {
	journalDir string
	files      journal.FS
	restore    func(name schema.Domain, state kernel.Domain) error
	keys       *idempotency.Keys
	metrics    *metrics.Metrics
	budgets    *budget.Ledger
	ids        ids
	instance   string
	epochs     []schema.Epoch
}

// condition is what the kernel can do at present.
type condition struct {
	refusing atomic.Bool            // the journal cannot be written
	refusal  atomic.Pointer[string] // why commands are refused; nil if they are not
	spent    atomic.Bool            // urgent commands are refused too: the journal's reserve is used up, or there is none
	retries  pace.Pace              // of all writes that no client waits for: a failed one makes every domain rebuild its state
	away     atomic.Bool            // no majority of the bus acknowledges entries: commands are refused
	unled    atomic.Bool            // another host may lead: no program is started
	ending   atomic.Bool            // programs are being ended because the kernel ends, or it was told to end
	followed atomic.Bool            // the audit domain waits for the next entry
	warnings func() []string        // for the operator
}

// outside is what calls have done outside the kernel.
type outside struct {
	blobs     kernel.Blobs
	refers    refer.Reader                      // reads what calls refer to
	seal      func(env map[string]string) error // Config.SealVariables
	providers *provide.Calls
	code      Code
	runs      *runs // effects in flight
	resumes   func(*idempotency.Intent) ([]byte, bool)
	hosting   *sharedHost
	ended     chan struct{}  // closed when every program has ended
	tasks     sync.WaitGroup // goroutines of agents
}

// lifetime is when the kernel ends, and what must end before.
type lifetime struct {
	stopping chan struct{}   // closed when the kernel is told to end
	life     context.Context // ends at the same time
	end      context.CancelFunc
	once     sync.Once
	failure  atomic.Pointer[error] // the first error, also if the kernel was told to end before it
	asking   sync.WaitGroup        // goroutines outside the loop
	own      atomic.Uint64         // numbers the calls of Do
}

// appender is the name of the actor that appends to the journal, which is registered like the domains.
const appender schema.Domain = "journal"

// spawn starts an actor on the loop, under the supervisor. The kernel's own names are unique, so a clash is a bug.
func (k *Kernel) spawn(name string, a actor.Actor) *actor.PID {
	props := actor.PropsFromProducer(func() actor.Actor { return a },
		actor.WithMailbox(actor.Unbounded()), actor.WithDispatcher(k.loop))
	pid, err := k.root.SpawnNamed(props, name)
	if err != nil {
		panic(fmt.Sprintf("spawn actor %s: %v", name, err))
	}
	return pid
}

// Turn runs one turn of a kernel that is Manual: the actors run until no mailbox has a message. Turns must not overlap. It
// returns the work that the loop would run on other goroutines, the sync of the journal last. The caller runs each function
// once, on any goroutine, now or after later turns; its result is handled in a later turn. Close and Recover wait for turns
// and for all of that work. more reports whether the next turn already has messages.
func (k *Kernel) Turn() (beside []func(), more bool) { return k.loop.step() }

// prepare does the part of a call that depends only on the call. It runs on goroutines other than the loop.
func (k *Kernel) prepare(call *kernel.Call) {
	if call.Err != nil || call.Syscall == nil {
		return
	}
	if p, ok := k.states[call.Syscall.Domain].(kernel.Preparer); ok {
		p.Prepare(call)
	}
}

// background runs slow work on a goroutine. Close waits for it.
func (k *Kernel) background(work func()) {
	k.asking.Add(1)
	k.loop.background(func() {
		defer k.asking.Done()
		work()
	})
}

// awaited is sent to a domain, which closes done when it has handled all earlier messages. Otherwise messages from outside
// the loop to several domains have no order.
type awaited struct{ done chan<- struct{} }

// await waits until a domain has handled all messages sent to it before, or the kernel is told to end.
func (k *Kernel) await(name schema.Domain) {
	done := make(chan struct{})
	k.root.Send(k.domains[name], awaited{done})
	select {
	case <-done:
	case <-k.stopping:
	}
}

// Stopping is closed when the kernel is told to end, by a command or after a failure.
func (k *Kernel) Stopping() <-chan struct{} { return k.stopping }

// requestShutdown tells the kernel to end. err is the reason; nil: a command.
func (k *Kernel) requestShutdown(err error) {
	if err != nil {
		k.failure.CompareAndSwap(nil, &err)
	}
	k.ending.Store(true)
	k.once.Do(func() {
		close(k.stopping)
		k.end()
	})
}

// ids generates ids for the kernel's own messages. It is safe for concurrent use.
type ids struct {
	mu      sync.Mutex
	stamper *schema.Stamper
}

func (i *ids) next() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stamper == nil {
		i.stamper = schema.NewStamper()
	}
	return i.stamper.NewID()
}

// Code configures registered code. The runner of Syscall.Invoke runs it.
type Code struct {
	// Check returns what is wrong with code to be registered; it is slow. If it is nil, no code can be registered.
	Check  func(ctx context.Context, source string) error
	AtOnce int // handlers that run at a time; those of one process take at most half
}

// firstRetry is the first pause between attempts to write what must be written when the journal can be.
const firstRetry = 100 * time.Millisecond

// originOf returns the origin of the blobs that a caller may refer to.
func (k *Kernel) originOf(caller *kernel.Caller) string {
	if p := k.processes.Process(caller.PID); p != nil {
		return p.Origin
	}
	if caller.Origin != "" {
		return caller.Origin
	}
	return k.origin
}

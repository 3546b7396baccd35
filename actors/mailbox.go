package actors

import (
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// mailbox is an unbounded mailbox that may run its actor on the goroutine that posts. The library's own hands every
// idle actor to its dispatcher: a goroutine switch for each step of a request, most of what a short request costs. Here
// a request that meets no other runs through reader, connection and domain on one goroutine, as plain calls would.
//
// A goroutine that runs an actor for its own message may find others posting meanwhile. It serves at most turn messages,
// then hands the rest to a worker, so that nobody works for others without end.
//
// An actor that is woken by released answers is one of many as a rule: it is gathered, and run with them when their poster
// says so.
type mailbox struct {
	inline  func(message any) bool // whether the poster of message may run the actor
	invoker actor.MessageInvoker
	workers actor.Dispatcher
	gather  func(job func()) // nil: the dispatcher does not gather

	mu        sync.Mutex
	system    []any
	user      []any
	next      int // user[:next] was taken
	running   bool
	suspended bool
}

// turn is how many messages a goroutine handles in a row.
const turn = 32

var _ actor.Mailbox = (*mailbox)(nil)

// newMailbox returns a producer of mailboxes whose actors run where inline says.
func newMailbox(inline func(message any) bool) actor.MailboxProducer {
	return func() actor.Mailbox { return &mailbox{inline: inline} }
}

// always runs an actor where its messages are posted.
func always(any) bool { return true }

// never runs an actor on a worker, so that whoever posts goes on.
func never(any) bool { return false }

// fromReader runs a connection's actor on its reader's goroutine, which has nothing else to do until it is done, and
// not on a domain's, which has.
func fromReader(message any) bool {
	switch message.(type) {
	case *frames, endOfInput:
		return true
	}
	return false
}

// gathered tells answers of which many are released at a time, each to a connection of its own.
func gathered(message any) bool {
	_, ok := message.(*released)
	return ok
}

// RegisterHandlers implements actor.Mailbox.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker, m.workers = invoker, dispatcher
	if g, ok := dispatcher.(*workers); ok {
		m.gather = g.gather
	}
}

// Start implements actor.Mailbox.
func (m *mailbox) Start() {}

// UserMessageCount implements actor.Mailbox.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.user) - m.next
}

// PostUserMessage implements actor.Mailbox.
func (m *mailbox) PostUserMessage(message any) {
	m.mu.Lock()
	if len(m.user) == cap(m.user) && m.next > len(m.user)/2 {
		m.user = slices.Delete(m.user, 0, m.next) // a mailbox that is never empty must not grow by what was taken
		m.next = 0
	}
	m.user = append(m.user, message)
	m.wake(!m.suspended, message)
}

// PostSystemMessage implements actor.Mailbox.
func (m *mailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	m.system = append(m.system, message)
	m.wake(true, message)
}

// wake unlocks m, and runs the actor or has it run where it is idle and something is to be done.
func (m *mailbox) wake(work bool, message any) {
	start := work && !m.running
	m.running = m.running || start
	m.mu.Unlock()
	switch {
	case !start:
	case m.inline(message):
		m.run()
	case m.gather != nil && gathered(message):
		m.gather(m.run)
	default:
		m.workers.Schedule(m.run)
	}
}

// run handles messages until there are none, or its turn is over. Only one goroutine is in it at a time.
func (m *mailbox) run() {
	for range turn {
		message, system, ok := m.take()
		if !ok {
			return
		}
		m.invoke(message, system)
	}
	m.workers.Schedule(m.run)
}

// take returns the next message, system messages first, or marks the actor idle.
func (m *mailbox) take() (message any, system, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.system) > 0 {
		message = m.system[0]
		m.system = m.system[1:]
		return message, true, true
	}
	m.system = nil
	if m.suspended || m.next == len(m.user) {
		m.running = false
		return nil, false, false
	}
	message = m.user[m.next]
	m.user[m.next] = nil
	if m.next++; m.next == len(m.user) {
		m.user, m.next = m.user[:0], 0
		if cap(m.user) > 4*turn {
			m.user = nil // a burst is over: its room is not kept
		}
	}
	return message, false, true
}

// invoke hands a message to the actor. A panic is the supervisor's business, as in the library's mailbox.
func (m *mailbox) invoke(message any, system bool) {
	defer func() {
		if reason := recover(); reason != nil {
			m.invoker.EscalateFailure(reason, message)
		}
	}()
	switch message.(type) {
	case *actor.SuspendMailbox:
		m.suspend(true)
	case *actor.ResumeMailbox:
		m.suspend(false)
	default:
		if system {
			m.invoker.InvokeSystemMessage(message)
		} else {
			m.invoker.InvokeUserMessage(message)
		}
	}
}

func (m *mailbox) suspend(on bool) {
	m.mu.Lock()
	m.suspended = on
	m.mu.Unlock()
}

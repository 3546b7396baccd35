package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// What the tests need to see of the parts that a Kernel is made of.

const (
	MaxBatch     = maxBatch
	Turn         = turn
	WindowFrames = windowFrames
	WindowBytes  = windowBytes
	ForgetEvery  = forgetEvery
	Share        = share
	MaxThrottled = maxThrottled
)

var (
	Always     = always
	FromReader = fromReader
	NewCredits = func() *credits { return newCredits(nil) }
	NewWorkers = newWorkers
)

// SetRoom sets how many bytes the keys of a process that is not the operator may take.
func (k *Keys) SetRoom(n int) { k.most = n }

// FromReaderMessages are the messages that a reader posts, FromOthers what a connection gets from anybody else.
func FromReaderMessages() []any { return []any{&frames{}, endOfInput{}} }

func FromOthers() []any {
	return []any{&answers{}, &released{}, flushed{}, &actor.Started{}, &actor.Terminated{}}
}

// Released is what the audit log posts to connections.
func Released() any { return &released{} }

func NewMailbox(inline func(any) bool) *mailbox { return newMailbox(inline)().(*mailbox) }

// Room is how many user messages fit into what the mailbox has allocated.
func (m *mailbox) Room() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cap(m.user)
}

// Shown is what Audit.Metrics answers a process.
func (m *Metrics) Shown(pid int64, origin string) *schema.AuditMetricsOutput {
	return m.shownTo(&kernel.Call{PID: pid, Origin: origin})
}

// Reach moves the kernel's clock on, as time does.
func (k *Kernel) Reach(tick int64) { k.clock.reach(tick) }

func (w *workers) Close()            { w.close() }
func (w *workers) Gather(job func()) { w.gather(job) }
func (w *workers) RunGathered()      { w.runGathered() }
func (w *workers) Lend()             { w.lend() }
func (w *workers) GiveBack()         { w.giveBack() }

func (c *credits) Take(size int) bool     { return c.take(size) }
func (c *credits) TryTake(size int) bool  { return c.tryTake(size) }
func (c *credits) Give(frames, bytes int) { c.give(frames, bytes, 0) }
func (c *credits) Close()                 { c.close() }

// A Feed is a connection without a reader: the table of syscalls has rows of one domain only, and a test of the order
// between domains chooses them itself.
type Feed struct {
	kernel *Kernel
	conn   *connection
	pid    *actor.PID
	done   chan struct{}
}

func (k *Kernel) NewFeed(link Link, name string) *Feed {
	done := make(chan struct{})
	conn := newConnection(k, link, nil, done)
	return &Feed{kernel: k, conn: conn, pid: k.spawn("connection/"+name, conn, fromReader), done: done}
}

// Send posts one batch, as the reader does; domain "" is for calls that failed already.
func (f *Feed) Send(domain schema.Domain, calls ...kernel.Call) {
	b := newFrames()
	b.domain = domain
	b.calls = append(b.calls, calls...)
	for range calls {
		f.conn.credits.take(0)
	}
	f.kernel.root.Send(f.pid, b)
}

// End ends the input and waits as Serve does.
func (f *Feed) End() {
	f.kernel.root.Send(f.pid, endOfInput{})
	f.conn.link.AwaitHangup()
	f.kernel.root.Send(f.pid, gone{})
	<-f.done
	f.conn.writer.busy.Wait()
}

// Connected reports whether a connection is there to be sent anything.
func Connected(k *Kernel, conn string) bool {
	_, ok := k.system.ProcessRegistry.GetLocal("connection/" + conn)
	return ok
}

// AnswerLate sends an answer to a connection as its domain does, though it may have died meanwhile.
func AnswerLate(k *Kernel, conn, data string) {
	b := newFrames()
	b.calls = append(b.calls, kernel.Call{Data: []byte(data), Message: schema.Message{Data: []byte(data)}})
	k.root.Send(actor.NewPID(k.system.Address(), "connection/"+conn), (*answers)(&b.batch))
}

// Admit reports whether a call passes the gate.
func (k *Kernel) Admit(call *kernel.Call) bool { return k.gate.Admit(call).Allows() }

package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Parts of a Kernel, for its tests.

const (
	MaxBatch     = maxBatch
	WindowFrames = windowFrames
	WindowBytes  = windowBytes
	ForgetEvery  = forgetEvery
	MaxThrottled = maxThrottled
)

// Reach advances the kernel's clock.
func (k *Kernel) Reach(tick int64) { k.clock.reach(tick) }

// A Window limits what a connection may have in flight.
type Window struct{ credits }

func (w *Window) Take(size int) bool     { return w.take(size) }
func (w *Window) Grow(size int) bool     { return w.grow(size) }
func (w *Window) Give(frames, bytes int) { w.give(frames, bytes, 0) }

// A Feed is a connection whose calls a test makes. The table of syscalls has rows of one domain only, so a test of the
// order between domains chooses the domains itself.
type Feed struct {
	kernel *Kernel
	conn   *connection
	done   chan struct{} // closed when the connection has ended
}

func (k *Kernel) NewFeed(link Link, name string) *Feed {
	f := &Feed{kernel: k, done: make(chan struct{})}
	f.conn = newConnection(k, link, kernel.Caller{Conn: name}, nil, func() { close(f.done) })
	f.conn.self = k.spawn("connection/"+name, fed{f.conn})
	return f
}

// fed is a connection that also runs functions of a test.
type fed struct{ *connection }

func (f fed) Receive(ctx actor.Context) {
	do, ok := ctx.Message().(func())
	if !ok {
		f.connection.Receive(ctx)
		return
	}
	do()
	f.advance(ctx)
}

// Send sends one batch, as if its lines had been read together; domain "" is for calls that have failed before.
func (f *Feed) Send(domain schema.Domain, calls ...kernel.Call) {
	f.run(func() {
		b := newFrames()
		b.domain, b.replyTo = domain, f.conn.self
		b.calls = append(b.calls, calls...)
		for range calls {
			f.conn.credits.take(0)
		}
		f.conn.waiting = append(f.conn.waiting, b)
	})
}

// run runs do in the connection's actor.
func (f *Feed) run(do func()) {
	f.kernel.root.Send(f.conn.self, do)
}

// End ends the input, and returns when the connection has ended.
func (f *Feed) End() {
	f.run(func() { f.conn.input.ended = true })
	<-f.done
}

// AnswerLate sends an answer to a connection as its domain does, although the connection may have died.
func AnswerLate(k *Kernel, conn, data string) {
	b := newFrames()
	b.calls = append(b.calls, kernel.Call{Request: kernel.Request{Message: schema.Message{Data: []byte(data)}}, Outcome: kernel.Outcome{Data: []byte(data)}})
	k.root.Send(actor.NewPID(k.system.Address(), "connection/"+conn), &b.batch)
}

// Admit reports whether a call passes the gate.
func (k *Kernel) Admit(call *kernel.Call) bool { return k.gate.Admit(call).Allows() }

// HandOff lets another goroutine continue the loop while it syncs, as its watchdog does.
func (k *Kernel) HandOff() {
	if e := &k.loop.lease; e.syncing.Swap(0) != 0 {
		k.loop.alive.Go(k.loop.run)
	}
}

// Work runs work in the background of the connection, and returns when the connection has stopped.
func (f *Feed) Work(work func()) {
	f.conn.background(func() any { work(); return nil })
	<-f.done
}

// RequestShutdown requests a clean end, as Syscall.Shutdown does.
func (k *Kernel) RequestShutdown(err error) { k.requestShutdown(err) }

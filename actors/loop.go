package actors

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/transport/poll"
)

// loop is the dispatcher of all actors. One goroutine runs them, one after the other. The steps of a turn are:
//
//	wait    for input or messages from outside, unless there is work left
//	run     the actors until no mailbox has a message; then sends the messages deferred to that point, and repeats
//	sync    the journal, if answers wait for it, and run once more
//
// So everything that arrives together shares one write to the journal, one fsync, and one write to each connection. A slow
// sync does not block the loop: another goroutine takes over (see lease).
type loop struct {
	poller poll.Poller
	root   *actor.RootContext
	begin  func()      // called at the start of a turn
	failed func(error) // called if the poller has failed

	manual bool // the owner of the kernel runs turns: see Kernel.Turn

	due
	turnOf
	lease lease
	alive sync.WaitGroup
}

// due is what any goroutine adds for the loop.
type due struct {
	mu     sync.Mutex
	beside []func()       // of a manual loop: work for other goroutines
	ready  []func()       // mailboxes with messages, oldest first
	next   []deferredSend // sent at the start of the next turn
	asleep bool           // the loop waits: an addition to ready must wake it
	closed bool
}

// turnOf is used by the goroutine that runs the loop.
type turnOf struct {
	running []func()
	rest    []deferredSend // sent when no mailbox has a message
	sync    func()         // called at the end of the turn, or nil
}

// deferredSend is a message to be sent later.
type deferredSend struct {
	to      *actor.PID
	message any
}

var _ actor.Dispatcher = (*loop)(nil)

func newLoop(p poll.Poller) *loop {
	if p == nil {
		p = poll.NewReaders()
	}
	return &loop{poller: p, lease: newLease()}
}

// Schedule implements actor.Dispatcher: it queues a mailbox.
func (l *loop) Schedule(run func()) {
	l.mu.Lock()
	l.ready = append(l.ready, run)
	l.wake()
}

// wake unlocks l, and wakes the loop if it waits.
func (l *loop) wake() {
	wake := l.asleep
	l.asleep = false
	l.mu.Unlock()
	if wake {
		l.poller.Wake()
	}
}

// Throughput implements actor.Dispatcher: the library never yields.
func (l *loop) Throughput() int { return math.MaxInt }

// atRest sends a message when all mailboxes are empty. Only actors may call it.
func (l *loop) atRest(to *actor.PID, message any) { l.rest = append(l.rest, deferredSend{to, message}) }

// nextTurn sends a message at the start of the next turn.
func (l *loop) nextTurn(to *actor.PID, message any) {
	l.mu.Lock()
	l.next = append(l.next, deferredSend{to, message})
	l.wake()
}

// syncAtRest calls sync at the end of the turn; sync blocks on the disk and reports to an actor. Only one sync may run at a
// time: the next may be requested after that report. Only actors may call it.
func (l *loop) syncAtRest(sync func()) { l.sync = sync }

// background runs work on a goroutine.
func (l *loop) background(work func()) {
	if !l.manual {
		go work()
		return
	}
	l.mu.Lock()
	l.beside = append(l.beside, work)
	l.mu.Unlock()
}

// start starts the loop.
func (l *loop) start() {
	if l.manual {
		return
	}
	l.alive.Go(l.run)
	l.alive.Go(func() { l.lease.watch(func() { l.alive.Go(l.run) }) })
}

// close ends the loop, and waits for its goroutines. All actors must have stopped.
func (l *loop) close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.poller.Wake()
	close(l.lease.quit)
	l.alive.Wait()
	return l.poller.Close()
}

// run runs turns while the caller's goroutine owns the loop. It stays on its thread: moving between threads wakes and
// idles others.
func (l *loop) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for l.turn() {
	}
}

// turn runs one turn. It returns false if the loop has ended, or another goroutine has taken it over.
func (l *loop) turn() bool {
	if !l.wait() {
		return false
	}
	l.actors()
	sync := l.sync
	if sync == nil {
		return true
	}
	l.sync = nil
	number := l.lease.begin()
	sync()
	if !l.lease.end(number) {
		return false
	}
	l.work()
	return true
}

// actors runs the actors of one turn.
func (l *loop) actors() {
	l.begin()
	l.mu.Lock()
	next := l.next
	l.next = nil
	l.mu.Unlock()
	l.send(next)
	l.work()
}

// step is a turn of a manual loop.
func (l *loop) step() (beside []func(), more bool) {
	l.actors()
	l.mu.Lock()
	defer l.mu.Unlock()
	beside, l.beside = l.beside, nil
	if l.sync != nil {
		beside = append(beside, l.sync)
		l.sync = nil
	}
	return beside, len(l.ready) > 0 || len(l.next) > 0
}

// wait waits until there is something to do. It returns false when the loop has ended.
func (l *loop) wait() bool {
	l.mu.Lock()
	l.asleep = len(l.ready) == 0 && len(l.next) == 0 && l.sync == nil && !l.closed
	timeout := time.Duration(0)
	if l.asleep {
		timeout = -1
	}
	l.mu.Unlock()
	if err := l.poller.Wait(timeout, l.awake); err != nil {
		l.failed(err)
		time.Sleep(lookEvery) // the kernel ends soon, and there is no input to wait for
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed
}

// awake records that the loop need not be woken: this turn handles what the poller reports.
func (l *loop) awake() {
	l.mu.Lock()
	l.asleep = false
	l.mu.Unlock()
}

// work runs the actors until this turn has nothing left to do.
func (l *loop) work() {
	for {
		l.drain()
		if len(l.rest) == 0 {
			return
		}
		rest := l.rest
		l.rest = nil
		l.send(rest)
	}
}

// drain runs mailboxes until none has a message.
func (l *loop) drain() {
	for {
		l.mu.Lock()
		l.ready, l.running = l.running[:0], l.ready
		l.mu.Unlock()
		if len(l.running) == 0 {
			return
		}
		for i, run := range l.running {
			l.running[i] = nil
			run()
		}
	}
}

func (l *loop) send(sends []deferredSend) {
	for _, p := range sends {
		l.root.Send(p.to, p.message)
	}
}

// lease records which goroutine owns the loop. A goroutine that syncs for long loses it to another, so that a slow disk
// does not delay calls that do not wait for it.
type lease struct {
	begun   atomic.Uint64 // number of syncs begun
	syncing atomic.Uint64 // number of the running sync; 0 if there is none, or the loop was taken over

	watching atomic.Bool
	wake     chan struct{} // starts the watchdog; buffered: one
	quit     chan struct{}
}

// Times of the watchdog. It sleeps while there are no syncs, so that an idle kernel has no wake-ups.
const (
	lookEvery = time.Millisecond // a sync that is running at two checks is slow
	looksIdle = 100              // checks without a new sync before it sleeps
)

func newLease() lease {
	return lease{wake: make(chan struct{}, 1), quit: make(chan struct{})}
}

// begin is called before a sync by the goroutine that owns the loop. It returns the argument of end.
func (e *lease) begin() (number uint64) {
	number = e.begun.Add(1)
	e.syncing.Store(number)
	if !e.watching.Load() && e.watching.CompareAndSwap(false, true) {
		e.wake <- struct{}{}
	}
	return number
}

// end reports whether the caller still owns the loop.
func (e *lease) end(number uint64) bool { return e.syncing.CompareAndSwap(number, 0) }

// watch is the watchdog: it calls replace for each slow sync, to start another goroutine with the loop.
func (e *lease) watch(replace func()) {
	for {
		select {
		case <-e.wake:
		case <-e.quit:
			return
		}
		if !e.look(replace) {
			return
		}
	}
}

// look checks all syncs until there are none. It returns false when the loop has ended.
func (e *lease) look(replace func()) bool {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	var begun, seen uint64
	for idle := 0; ; idle++ {
		select {
		case <-every.C:
		case <-e.quit:
			return false
		}
		now := e.syncing.Load()
		if now != 0 && now == seen && e.syncing.CompareAndSwap(now, 0) {
			replace()
		}
		seen = now
		if last := e.begun.Load(); last != begun {
			begun, idle = last, 0
		}
		if idle < looksIdle {
			continue
		}
		e.watching.Store(false)
		if e.begun.Load() == begun || !e.watching.CompareAndSwap(false, true) {
			return true
		}
	}
}

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

// loop is the dispatcher of all actors. One goroutine runs them, one after the other, and does all that they do without waiting.
// A turn of it:
//
//	wait    for input, for messages from outside, or for nothing where there is work left
//	run     actors until none has a message; then what they have put off until then, and again
//	sync    the journal, where answers wait for that, and once more run
//
// So everything that came in together shares one write to the journal, one fsync, and one write to each connection. A sync that
// takes long does not hold up the loop: another goroutine goes on with it (see lease).
type loop struct {
	poller poll.Poller
	root   *actor.RootContext
	begin  func()      // called at the beginning of a turn
	failed func(error) // is told that the poller has failed

	manual bool // whoever made the kernel takes the turns, see Kernel.Turn

	mu     sync.Mutex
	beside []func() // of a manual loop: what would run on goroutines beside it
	ready  []func() // mailboxes with messages, oldest first
	next   []parcel // sent at the beginning of the next turn
	asleep bool     // the loop waits: whoever adds to ready wakes it
	closed bool

	// Of the goroutine that has the loop.
	running []func()
	rest    []parcel // sent when no actor has a message
	sync    func()   // wanted at the end of the turn; nil: nothing is

	lease lease
	alive sync.WaitGroup
}

// parcel is a message that is yet to be sent.
type parcel struct {
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

// Schedule implements actor.Dispatcher: it has the loop run a mailbox.
func (l *loop) Schedule(run func()) {
	l.mu.Lock()
	l.ready = append(l.ready, run)
	l.wake()
}

// wake unlocks l, and has it look for what was added.
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

// atRest sends a message once no actor has one. It is for actors.
func (l *loop) atRest(to *actor.PID, message any) { l.rest = append(l.rest, parcel{to, message}) }

// nextTurn sends a message at the beginning of the next turn.
func (l *loop) nextTurn(to *actor.PID, message any) {
	l.mu.Lock()
	l.next = append(l.next, parcel{to, message})
	l.wake()
}

// syncAtRest has sync called at the end of the turn, which waits for the disk and reports to an actor. One at a time: the next may be
// asked for once that has reported. It is for actors.
func (l *loop) syncAtRest(sync func()) { l.sync = sync }

// background runs work beside the loop.
func (l *loop) background(work func()) {
	if !l.manual {
		go work()
		return
	}
	l.mu.Lock()
	l.beside = append(l.beside, work)
	l.mu.Unlock()
}

// start begins to run.
func (l *loop) start() {
	if l.manual {
		return
	}
	l.alive.Go(l.run)
	l.alive.Go(func() { l.lease.watch(func() { l.alive.Go(l.run) }) })
}

// close ends the loop, and waits for its goroutines. All actors have stopped.
func (l *loop) close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.poller.Wake()
	close(l.lease.quit)
	l.alive.Wait()
	return l.poller.Close()
}

// run takes turns for as long as the caller's goroutine has the loop. It stays on its thread: one that wanders from thread to thread
// wakes and idles the others on the way.
func (l *loop) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for l.turn() {
	}
}

// turn takes one turn. It returns false where the loop has ended, or another goroutine has gone on with it.
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

// wait returns when there is something to do, or false where there never will be.
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
		time.Sleep(lookEvery) // the end of the kernel is to come, without input
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed
}

// awake notes that nobody has to wake the loop any more: what the poller reports is for this turn.
func (l *loop) awake() {
	l.mu.Lock()
	l.asleep = false
	l.mu.Unlock()
}

// work runs the actors until there is nothing left to do in this turn.
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

func (l *loop) send(parcels []parcel) {
	for _, p := range parcels {
		l.root.Send(p.to, p.message)
	}
}

// lease says which goroutine has the loop. The one that syncs loses it to another when that takes long: on a disk that is slow,
// or slow for once, everything goes on that need not wait for it.
type lease struct {
	begun   atomic.Uint64 // syncs so far
	syncing atomic.Uint64 // the number of the one that is under way; 0: there is none, or the loop was lent

	watching atomic.Bool
	wake     chan struct{} // the watchdog is to look; takes one
	quit     chan struct{}
}

// Times of the watchdog. It sleeps while nothing is synced, so that an idle kernel wakes for nothing.
const (
	lookEvery = time.Millisecond // a sync that is there at two looks takes long
	looksIdle = 100              // looks without a new sync until it sleeps
)

func newLease() lease {
	return lease{wake: make(chan struct{}, 1), quit: make(chan struct{})}
}

// begin is called before a sync, by the goroutine that has the loop. It returns what to end it with.
func (e *lease) begin() (number uint64) {
	number = e.begun.Add(1)
	e.syncing.Store(number)
	if !e.watching.Load() && e.watching.CompareAndSwap(false, true) {
		e.wake <- struct{}{}
	}
	return number
}

// end reports whether the caller still has the loop.
func (e *lease) end(number uint64) bool { return e.syncing.CompareAndSwap(number, 0) }

// watch is the watchdog: it has lend called for each sync that takes long, to go on with the loop.
func (e *lease) watch(lend func()) {
	for {
		select {
		case <-e.wake:
		case <-e.quit:
			return
		}
		if !e.look(lend) {
			return
		}
	}
}

// look looks at every sync until there are none any more. It returns false where the loop has ended.
func (e *lease) look(lend func()) bool {
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
			lend()
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

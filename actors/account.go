package actors

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Bounds are what each agent may take of the kernel, over all its connections (PROTOCOL 9). The operator has none.
type Bounds struct {
	InFlightBytes         int64 // requests under way, and answers not yet taken
	JournalBytesPerSecond int64 // sustained
	JournalBurstBytes     int64 // at once, after a pause
}

// account is what one agent takes at the moment.
type account struct {
	of  *accounts
	pid int64

	inFlight atomic.Int64
	waiting  atomic.Bool // somebody waits for room
	mu       sync.Mutex
	waiters  []func() // told to look again

	// paid is the time, in nanoseconds since the kernel's start, when the journal's rate will have made up for what was written.
	paid atomic.Int64

	throttled atomic.Int64 // calls that were refused since the last note

	// Guarded by of.mu.
	connections int
	report      *time.Timer // notes what was throttled; nil: there is nothing
}

// maxThrottled is how many calls of an agent are refused in a second. Then its connections are not read from until the next:
// refusals take time that others wait for.
const maxThrottled = 4096

// accounts are those of the agents that have connections, or have written much lately.
type accounts struct {
	bounds Bounds
	begun  time.Time
	note   func(pid int64, step schema.Request)

	notes sync.WaitGroup // under way

	mu     sync.Mutex
	each   map[int64]*account
	sweep  int // how many there may be before those that are not needed are forgotten
	closed bool
}

func newAccounts(b Bounds, note func(int64, schema.Request)) *accounts {
	return &accounts{bounds: b, begun: time.Now(), note: note, each: make(map[int64]*account)}
}

// open returns what a connection of pid draws on its account with; close has to follow. It is nil for the operator's.
func (s *accounts) open(pid int64) *drawing {
	if pid == kernel.Operator || s.bounds == (Bounds{}) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.each[pid]
	if a == nil {
		if len(s.each) >= s.sweep {
			now := s.since(time.Now())
			for pid, old := range s.each {
				if old.connections == 0 && old.report == nil && old.paid.Load() <= now {
					delete(s.each, pid)
				}
			}
			s.sweep = 2*len(s.each) + 16
		}
		a = &account{of: s, pid: pid}
		s.each[pid] = a
	}
	a.connections++
	return &drawing{account: a}
}

// end notes what was throttled and not noted yet. Nothing is noted after it.
func (s *accounts) end() {
	s.mu.Lock()
	s.closed = true
	var left []*account
	for _, a := range s.each {
		if a.report != nil && a.report.Stop() {
			left = append(left, a)
		}
	}
	s.mu.Unlock()
	for _, a := range left {
		a.flush()
	}
	s.notes.Wait()
}

func (s *accounts) since(now time.Time) int64 { return int64(now.Sub(s.begun)) }

// drawing is what one connection has drawn on its agent's account. A nil drawing is the operator's, and draws nothing.
type drawing struct {
	account *account

	mu     sync.Mutex
	held   int64
	closed bool
}

// close gives back what the connection still holds.
func (d *drawing) close() {
	if d == nil {
		return
	}
	d.mu.Lock()
	d.account.inFlight.Add(-d.held)
	d.held, d.closed = 0, true
	d.mu.Unlock()
	d.account.wake()
	d.account.of.mu.Lock()
	d.account.connections--
	d.account.of.mu.Unlock()
}

// take adds size bytes of input to what is in flight, once there is room or nothing else is, and the agent is not refused too
// many calls already. It returns false where ctx ends before.
func (d *drawing) take(ctx context.Context, size int) bool {
	for !d.tryTake(size) {
		look := make(chan struct{})
		d.await(size, func() { close(look) })
		select {
		case <-look:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// await has look called, once, when tryTake is worth trying again.
func (d *drawing) await(size int, look func()) {
	if d == nil {
		return
	}
	a := d.account
	a.mu.Lock()
	a.waiters = append(a.waiters, look)
	a.waiting.Store(true)
	a.mu.Unlock()
	if a.fits(size) { // whatever gave back before this looks for nobody
		a.wake()
	}
}

// tryTake is take for who does not wait.
func (d *drawing) tryTake(size int) bool {
	if d == nil {
		return true
	}
	a := d.account
	for {
		held := a.inFlight.Load()
		if !a.fits(size) {
			return false
		}
		if a.inFlight.CompareAndSwap(held, held+int64(size)) {
			break
		}
	}
	d.mu.Lock()
	d.held += int64(size)
	d.mu.Unlock()
	return true
}

// fits reports whether tryTake would take so many bytes.
func (a *account) fits(size int) bool {
	held := a.inFlight.Load()
	return a.throttled.Load() < maxThrottled && (held == 0 || held+int64(size) <= a.of.bounds.InFlightBytes)
}

// add adds bytes that are there already.
func (d *drawing) add(size int) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.held += int64(size)
		d.account.inFlight.Add(int64(size))
	}
}

// give takes back what was taken or added.
func (d *drawing) give(size int) {
	if d == nil || size == 0 {
		return
	}
	d.mu.Lock()
	if !d.closed {
		d.held -= int64(size)
		d.account.inFlight.Add(-int64(size))
	}
	d.mu.Unlock()
	d.account.wake()
}

// wake has those that wait look again.
func (a *account) wake() {
	if !a.waiting.Load() {
		return
	}
	a.mu.Lock()
	waiters := a.waiters
	a.waiters = nil
	a.waiting.Store(false)
	a.mu.Unlock()
	for _, look := range waiters {
		look()
	}
}

// admit is the stage of the gate that refuses the calls of an agent while it is over a bound. What was refused leaves no entry
// of its own.
func (s *accounts) admit(call *kernel.Call) kernel.Verdict {
	if call.Caller.PID == kernel.Operator || call.Parked {
		return kernel.Verdict{}
	}
	s.mu.Lock()
	a := s.each[call.Caller.PID]
	s.mu.Unlock()
	if a == nil {
		return kernel.Verdict{}
	}
	b, err := &s.bounds, (*fault.Fault)(nil)
	if debt := a.paid.Load() - s.since(time.Now()); debt > b.nanoseconds(b.JournalBurstBytes) {
		err = fault.CallTooMany.New(
			"the calls of pid %d have filled the journal faster than %d bytes a second: nothing was done; try again in %d ms",
			a.pid, b.JournalBytesPerSecond, 1+(debt-b.nanoseconds(b.JournalBurstBytes))/int64(time.Millisecond))
	} else if held := a.inFlight.Load(); held > b.InFlightBytes {
		err = fault.CallTooMany.New(
			"pid %d has %d bytes of requests and unread answers in flight, and may have %d: nothing was done; read the answers, then try again",
			a.pid, held, b.InFlightBytes)
	}
	if err != nil && call.Probe == nil {
		call.Throttled = true
		a.throttle()
	}
	return kernel.Deny(err)
}

// nanoseconds is how long the sustained rate takes for so many bytes.
func (b *Bounds) nanoseconds(bytes int64) int64 {
	return int64(float64(bytes) / float64(b.JournalBytesPerSecond) * float64(time.Second))
}

// wrote counts an entry of the agent's in the journal.
func (d *drawing) wrote(bytes int) {
	if d == nil {
		return
	}
	a := d.account
	cost, now := a.of.bounds.nanoseconds(int64(bytes)), a.of.since(time.Now())
	for {
		paid := a.paid.Load()
		if a.paid.CompareAndSwap(paid, max(paid, now)+cost) {
			return
		}
	}
}

// throttle counts a call that was refused. All of a second become one note.
func (a *account) throttle() {
	if a.throttled.Add(1) > 1 {
		return // another caller has done it already
	}
	s := a.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.notes.Add(1)
	a.report = time.AfterFunc(time.Second, func() {
		s.mu.Lock()
		a.report = nil
		s.mu.Unlock()
		a.flush()
	})
}

// flush notes what was throttled. It may run calls of the agent, so the caller holds no lock.
func (a *account) flush() {
	defer a.of.notes.Done()
	a.of.note(a.pid, schema.KernelThrottled.With(&schema.ThrottledInput{PID: a.pid, Count: a.throttled.Swap(0)}))
	a.wake()
}

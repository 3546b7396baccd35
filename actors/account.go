package actors

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema/fault"
)

// Bounds limit what each agent may use of the kernel, over all its connections (PROTOCOL 9). The operator has no bounds.
type Bounds struct {
	InFlightBytes         int64 // of requests in flight and answers not yet read
	JournalBytesPerSecond int64 // sustained
	JournalBurstBytes     int64 // at once, after a pause
}

// account is the present use of one agent.
type account struct {
	of  *accounts
	pid int64

	inFlight atomic.Int64
	waiting  atomic.Bool // there are waiters
	mu       sync.Mutex
	waiters  []func() // called when there may be room

	// paid is when the sustained rate covers all that was written to the journal, in nanoseconds since the kernel's start.
	paid atomic.Int64

	throttled atomic.Int64 // calls refused since the last note
	garbage   garbage

	// Guarded by of.mu.
	connections int
	report      *time.Timer // writes a note about refused calls; nil: none were refused
}

// garbage counts malformed lines.
type garbage struct {
	flooded atomic.Bool // more than the bound since the last note
	second  int64       // guarded by mu of the account
	lines   int         // in it, long ones as several; likewise
}

// maxThrottled bounds the refused calls of an agent per second. Above it, its connections are not read until the next
// second, because refusals take processor time from others.
const maxThrottled = 4096

// maxMalformed bounds the malformed lines and calls of an agent per second, each begun KiB as one. Above it, they count as refused calls, and its
// connections are not read until the next second: an error costs more to make than to cause.
const maxMalformed = 512

// accounts has the accounts of agents that have connections, or have written much lately.
type accounts struct {
	bounds Bounds
	begun  time.Time
	note   func(pid, count int64) // journals how many calls were refused

	notes sync.WaitGroup // in flight

	mu     sync.Mutex
	each   map[int64]*account
	sweep  int // the number at which unused accounts are removed
	closed bool
}

func newAccounts(b Bounds, note func(pid, count int64)) *accounts {
	return &accounts{bounds: b, begun: time.Now(), note: note, each: make(map[int64]*account)}
}

// open returns the share of a connection of pid in its account; close must follow. It is nil for the operator.
func (s *accounts) open(pid int64) *share {
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
	return &share{account: a}
}

// end writes the notes that are due, and prevents further ones.
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

// share is the part of one connection in its agent's account. A nil share is the operator's and counts nothing.
type share struct {
	account *account

	mu     sync.Mutex
	held   int64
	closed bool
}

// close releases what the connection still uses.
func (d *share) close() {
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

// take adds size bytes of input when there is room or nothing else is in flight, and the agent has not had too many calls
// refused. It returns false if ctx ends first.
func (d *share) take(ctx context.Context, size int) bool {
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

// await calls look once, when tryTake may succeed.
func (d *share) await(size int, look func()) {
	if d == nil {
		return
	}
	a := d.account
	a.mu.Lock()
	a.waiters = append(a.waiters, look)
	a.waiting.Store(true)
	a.mu.Unlock()
	if a.fits(size) { // a release before this call has not called look
		a.wake()
	}
}

// tryTake is take without waiting.
func (d *share) tryTake(size int) bool {
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

// fits reports whether tryTake would succeed.
func (a *account) fits(size int) bool {
	held := a.inFlight.Load()
	return a.throttled.Load() < maxThrottled && !a.garbage.flooded.Load() && (held == 0 || held+int64(size) <= a.of.bounds.InFlightBytes)
}

// add adds bytes that are already in flight.
func (d *share) add(size int) {
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

// give releases bytes that were taken or added.
func (d *share) give(size int) {
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

// wake calls the waiters.
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

// admit is the stage of the gate that refuses calls of an agent that exceeds a bound. They have no entry.
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
			"pid %d has %d bytes of requests and unread answers in flight; its bound is %d: nothing was done; read the answers, then try again",
			a.pid, held, b.InFlightBytes)
	}
	if err != nil && call.Probe == nil {
		call.Throttled = true
		a.throttle()
	}
	return kernel.Deny(err)
}

// nanoseconds returns the time in which the sustained rate allows that many bytes.
func (b *Bounds) nanoseconds(bytes int64) int64 {
	return int64(float64(bytes) / float64(b.JournalBytesPerSecond) * float64(time.Second))
}

// wrote counts bytes of the agent's entries in the journal.
func (d *share) wrote(bytes int) {
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

// malformed counts a line that is no call.
func (d *share) malformed(size int) {
	if d == nil {
		return
	}
	a := d.account
	a.mu.Lock()
	if now := a.of.since(time.Now()) / int64(time.Second); now != a.garbage.second {
		a.garbage.second, a.garbage.lines = now, 0
	}
	a.garbage.lines += 1 + size>>10
	over := a.garbage.lines > maxMalformed
	a.mu.Unlock()
	if over {
		a.garbage.flooded.Store(true) // before throttle, whose note ends it
		a.throttle()
	}
}

// throttle counts a refused call. One note covers a whole second.
func (a *account) throttle() {
	if a.throttled.Add(1) > 1 {
		return // another call has started the timer
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

// flush writes the note. It may run calls of the agent, so the caller must hold no lock.
func (a *account) flush() {
	defer a.of.notes.Done()
	a.garbage.flooded.Store(false)
	a.of.note(a.pid, a.throttled.Swap(0))
	a.wake()
}

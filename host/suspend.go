package host

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// How long an agent is suspended that floods the kernel: the first time, and at most. Each time doubles it; a calm minute
// after the last one makes it the first again.
const (
	firstSuspension = time.Second
	lastSuspension  = 32 * time.Second
	calm            = time.Minute
)

// suspension is what a Process remembers of those.
type suspension struct {
	mu    sync.Mutex // held while its signals are sent too: no STOP comes after the CONT that ends it
	on    bool
	halt  atomic.Bool // all processes are to be stopped until that changes; see Want
	last  time.Duration
	ended time.Time
}

// Suspend stops all processes of the agent (STOP), lets them go on after a while (CONT), and returns then. An agent that is
// told to end goes on at once. One that is suspended already has those processes stopped that were missed, and Suspend
// returns at once.
func (p *Process) Suspend() {
	s := &p.suspension
	s.mu.Lock()
	first := !s.on
	if first {
		if time.Since(s.ended) > calm {
			s.last = 0
		}
		s.on, s.last = true, min(max(firstSuspension, 2*s.last), lastSuspension)
	}
	pause := s.last
	p.Signal(syscall.SIGSTOP)
	p.signalOthers(syscall.SIGSTOP)
	s.mu.Unlock()
	if !first {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.told:
	case <-p.killed:
	case <-p.done:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on, s.ended = false, time.Now()
	if !p.halts() {
		p.signalOthers(syscall.SIGCONT)
		p.Signal(syscall.SIGCONT)
	}
}

// Want says whether the agent's processes are to be stopped, which the next Halt sees to.
func (p *Process) Want(halt bool) { p.suspension.halt.Store(halt) }

// Halt stops all processes of the agent (STOP), or has them go on (CONT), as Want has said last. An agent that is told to end goes on.
func (p *Process) Halt() {
	s := &p.suspension
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.halts():
		p.Signal(syscall.SIGSTOP)
		p.signalOthers(syscall.SIGSTOP)
		p.signalOthers(syscall.SIGSTOP) // what one has started meanwhile
	case !s.on:
		p.signalOthers(syscall.SIGCONT)
		p.Signal(syscall.SIGCONT)
	}
}

// halts reports whether the agent's processes are to be stopped: one that is told to end is not halted any more.
func (p *Process) halts() bool {
	select {
	case <-p.told:
		return false
	default:
		return p.suspension.halt.Load()
	}
}

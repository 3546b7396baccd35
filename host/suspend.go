package host

import (
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
	on    bool
	last  time.Duration
	ended time.Time
}

// Suspend stops all processes of the agent (STOP), lets them go on after a while (CONT), and returns then. An agent that is
// told to end goes on at once. One that is suspended already has those processes stopped that were missed, and Suspend
// returns at once.
func (p *Process) Suspend() {
	p.mu.Lock()
	s := &p.suspension
	first := !s.on
	if first {
		if time.Since(s.ended) > calm {
			s.last = 0
		}
		s.on, s.last = true, min(max(firstSuspension, 2*s.last), lastSuspension)
	}
	pause := s.last
	p.mu.Unlock()
	p.Signal(syscall.SIGSTOP)
	p.signalOthers(syscall.SIGSTOP)
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
	p.mu.Lock()
	s.on, s.ended = false, time.Now()
	p.mu.Unlock()
	p.signalOthers(syscall.SIGCONT)
	p.Signal(syscall.SIGCONT)
}

package host

import (
	"errors"
	"fmt"
	"time"
)

// Restart says after which ends a program is started again.
type Restart string

// The restart policies (PROTOCOL 5).
const (
	RestartNever     Restart = "never"
	RestartOnFailure Restart = "on-failure"
	RestartAlways    Restart = "always"
)

// ErrRestart refuses a restart policy that there is not.
var ErrRestart = errors.New("restart policy is not one of never, on-failure, always")

// ParseRestart reads a restart policy. Nothing means never.
func ParseRestart(text string) (Restart, error) {
	switch r := Restart(text); r {
	case "":
		return RestartNever, nil
	case RestartNever, RestartOnFailure, RestartAlways:
		return r, nil
	}
	return "", fmt.Errorf("parse %q: %w", text, ErrRestart)
}

// Policy holds the numbers that decide what becomes of an agent whose program ended. Its methods are pure: they read no
// clock, so that the same history always gives the same decision.
type Policy struct {
	Restart Restart
	// MinDelay is the pause before the first restart; each further one doubles it, up to MaxDelay.
	MinDelay, MaxDelay time.Duration
	// GoodRun is how long a program has to run for its earlier faults, and the pauses, to be forgotten.
	GoodRun time.Duration
	// Recoverable is how many faults in a row are answered by a restart alone.
	Recoverable int
	// Quarantines is how many faults after those are answered by a quarantine; the one after them exiles.
	Quarantines int
	// QuarantineTicks is the length of the first quarantine, in ticks of the kernel; each further one doubles it.
	QuarantineTicks int64
}

// DefaultPolicy returns the numbers that hold where nobody chose others. With them a program that never runs for a
// minute is started again after 1 s and 2 s, then after quarantines of 30, 60 and 120 ticks, then never: six faults in
// about four minutes. A program that fails once an hour is restarted for ever.
func DefaultPolicy(r Restart) Policy {
	return Policy{
		Restart: r, MinDelay: time.Second, MaxDelay: time.Minute, GoodRun: time.Minute,
		Recoverable: 2, Quarantines: 3, QuarantineTicks: 30,
	}
}

// Cause says, of an end or of something that a running program did, what the table of faults needs to know.
type Cause int

// The causes, from the harmless to the hostile.
const (
	// CauseOrdered is an end that was asked for: Terminate, shutdown, revocation.
	CauseOrdered Cause = iota
	// CauseFinished is exit code 0.
	CauseFinished
	// CauseFailed is another exit code, a signal, or a program that could not be started again.
	CauseFailed
	// CauseLimit is a limit on time or memory that was reached.
	CauseLimit
	// CauseFlood is what harms others while it lasts: too many processes, a channel full of garbage.
	CauseFlood
	// CauseEscape is an attempt to be somebody else, such as a mark that was tampered with.
	CauseEscape
)

// Fault is what an end counts as (CAP section 7, "RFC-006 Fault Isolation may revoke capabilities for faulted agents").
type Fault string

// The faults. Only EXILE is final: the agent is TERMINATED and its token revoked. In QUARANTINE it is BLOCKED and keeps
// its token, its mailbox and what it holds.
const (
	FaultNone        Fault = ""
	FaultRecoverable Fault = "RECOVERABLE"
	FaultQuarantine  Fault = "QUARANTINE"
	FaultExile       Fault = "EXILE"
)

// Record is what is remembered of an agent between its ends. The zero value is an agent that never ended.
type Record struct {
	// Faults counts those in a row, with no good run between them.
	Faults int
	// Quick counts the ends in a row, faults or not, that came before a good run; pauses grow with it.
	Quick int
	// Restarts counts all restarts.
	Restarts int
}

// Decision is what becomes of an agent.
type Decision struct {
	Fault Fault
	// Restart says whether the program is to be started again, once both pauses are over.
	Restart bool
	// Delay is the pause on the clock.
	Delay time.Duration
	// BlockedTicks is the quarantine: how many ticks the agent stays BLOCKED, counted from its end.
	BlockedTicks int64
	// Revoke says that the agent's token has to go.
	Revoke bool
	// Why is for the record.
	Why string
}

// Decide returns what becomes of an agent whose program ran for the given time, and what is remembered of it.
//
//	cause      first fault    in a row
//	ordered    none           ends
//	finished   none           restarted by "always" alone
//	failed     RECOVERABLE    Recoverable times, then QUARANTINE, then EXILE
//	limit      RECOVERABLE    the same
//	flood      QUARANTINE     counts as one more than Recoverable at once
//	escape     EXILE
//
// A fault under "never" is named, but ends the agent: it is not EXILE unless the table says so, and nothing is revoked
// beyond what ending revokes. The rows are in Policy's numbers.
func (p Policy) Decide(r Record, cause Cause, ran time.Duration) (Record, Decision) {
	if ran >= p.GoodRun {
		r.Faults, r.Quick = 0, 0
	}
	d := Decision{Fault: FaultNone}
	switch cause {
	case CauseOrdered:
		d.Why = "ended on order"
		return r, d
	case CauseFinished:
		r.Faults = 0
		d.Why = "finished"
		d.Restart = p.Restart == RestartAlways
	default:
		r.Faults = p.count(r.Faults, cause)
		d = p.fault(r.Faults)
	}
	if d.Restart {
		d.Delay = doubled(p.MinDelay, r.Quick, p.MaxDelay)
		r.Quick++
		r.Restarts++
	}
	return r, d
}

// count returns how many faults in a row there are with this one.
func (p Policy) count(before int, cause Cause) int {
	switch cause {
	case CauseEscape:
		return p.Recoverable + p.Quarantines + 1
	case CauseFlood:
		return max(before, p.Recoverable) + 1
	default:
		return before + 1
	}
}

// fault is the answer to the n-th fault in a row.
func (p Policy) fault(n int) Decision {
	d := Decision{Restart: p.Restart == RestartOnFailure || p.Restart == RestartAlways}
	switch nth := n - p.Recoverable; {
	case nth <= 0:
		d.Fault = FaultRecoverable
		d.Why = fmt.Sprintf("fault %d of %d that a restart alone answers", n, p.Recoverable)
	case nth <= p.Quarantines:
		d.Fault = FaultQuarantine
		d.BlockedTicks = doubled(p.QuarantineTicks, nth-1, 1<<40)
		d.Why = fmt.Sprintf("quarantine %d of %d", nth, p.Quarantines)
	default:
		d.Fault, d.Restart, d.Revoke = FaultExile, false, true
		d.Why = "no quarantine is left"
	}
	return d
}

// doubled returns first doubled n times, and at most limit.
func doubled[T ~int64](first T, n int, limit T) T {
	for range n {
		if first >= limit/2 {
			return limit
		}
		first *= 2
	}
	return min(first, limit)
}

package host

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Restart says after which ends a program is restarted.
type Restart string

// The restart policies (PROTOCOL 5).
const (
	RestartNever     Restart = "never"
	RestartOnFailure Restart = "on-failure"
	RestartAlways    Restart = "always"
)

// ErrRestart is the error for an unknown restart policy.
var ErrRestart = errors.New("restart policy is not one of never, on-failure, always")

// ParseRestart parses a restart policy. "" means never.
func ParseRestart(text string) (Restart, error) {
	switch r := Restart(text); r {
	case "":
		return RestartNever, nil
	case RestartNever, RestartOnFailure, RestartAlways:
		return r, nil
	}
	return "", fmt.Errorf("parse %q: %w", text, ErrRestart)
}

// Policy has the parameters of the decision about an agent after its program's end. Its methods read no clock, so the same
// history always gives the same decision.
type Policy struct {
	Restart Restart
	// MinDelay is the pause before the first restart; each further one doubles it, up to MaxDelay.
	MinDelay, MaxDelay time.Duration
	// GoodRun is how long a program must run to reset its fault count and its pauses.
	GoodRun time.Duration
	// Recoverable is how many consecutive faults only cause a restart.
	Recoverable int
	// Quarantines is how many faults after those cause a quarantine; the next one exiles.
	Quarantines int
	// QuarantineTicks is the length of the first quarantine, in ticks of the kernel; each further one doubles it.
	QuarantineTicks int64
}

// DefaultPolicy returns the default parameters. A program that never runs for a minute is then restarted after 1 s and 2 s,
// then after quarantines of 30, 60 and 120 ticks, then never: six faults in about four minutes. A program that fails once
// an hour is always restarted.
func DefaultPolicy(r Restart) Policy {
	return Policy{
		Restart: r, MinDelay: time.Second, MaxDelay: time.Minute, GoodRun: time.Minute,
		Recoverable: 2, Quarantines: 3, QuarantineTicks: 30,
	}
}

// Cause is the cause of an end, or of an action against a running program, in the table of faults.
type Cause int

// The causes, from harmless to hostile.
const (
	// CauseOrdered is a requested end: Terminate, shutdown, revocation.
	CauseOrdered Cause = iota
	// CauseFinished is exit code 0.
	CauseFinished
	// CauseFailed is another exit code, a signal, or a failed restart.
	CauseFailed
	// CauseLimit is an exceeded limit on time, memory or disk.
	CauseLimit
	// CauseFlood harms others while it lasts: too many processes, or invalid data on the channel.
	CauseFlood
	// CauseEscape is an attempt to impersonate, such as breaking a mark.
	CauseEscape
)

// Fault is the class of an end (CAP section 7, "RFC-006 Fault Isolation may revoke capabilities for faulted agents").
type Fault string

// The faults. Only EXILE is final: the agent is TERMINATED and its token revoked. In QUARANTINE it is BLOCKED and keeps its
// token, its mailbox and its resources.
const (
	FaultNone        Fault = ""
	FaultRecoverable Fault = "RECOVERABLE"
	FaultQuarantine  Fault = "QUARANTINE"
	FaultExile       Fault = "EXILE"
)

// Record is the history of an agent's ends. The zero value is an agent whose program has never ended.
type Record struct {
	// Faults counts consecutive faults without a good run between them.
	Faults int
	// Quick counts the consecutive ends, faults or not, without a good run between them; pauses grow with it.
	Quick int
	// Restarts counts all restarts.
	Restarts int
}

// Decision is the outcome for an agent.
type Decision struct {
	Fault Fault
	// Restart reports whether the program is restarted, after both pauses.
	Restart bool
	// Delay is the pause on the clock.
	Delay time.Duration
	// BlockedTicks is the length of the quarantine: how many ticks the agent stays BLOCKED after its end.
	BlockedTicks int64
	// Revoke says that the agent's token is revoked.
	Revoke bool
	// Why is the reason, for the journal.
	Why string
}

// Decide returns the decision for an agent whose program ran for the given time, and its new history.
//
//	cause      first fault    in a row
//	ordered    none           ends
//	finished   none           restarted by "always" only
//	failed     RECOVERABLE    Recoverable times, then QUARANTINE, then EXILE
//	limit      RECOVERABLE    the same
//	flood      QUARANTINE     counts as one more than Recoverable at once
//	escape     EXILE
//
// With the policy "never", a fault is named but ends the agent: it is not EXILE unless the table says so, and nothing is
// revoked beyond what ending revokes.
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

// count returns the number of consecutive faults, including this one.
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

// fault returns the decision for the n-th consecutive fault.
func (p Policy) fault(n int) Decision {
	d := Decision{Restart: p.Restart == RestartOnFailure || p.Restart == RestartAlways}
	switch nth := n - p.Recoverable; {
	case nth <= 0:
		d.Fault = FaultRecoverable
		d.Why = fmt.Sprintf("fault %d of %d that only cause a restart", n, p.Recoverable)
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

// doubled returns first, doubled n times, but at most limit.
func doubled[T ~int64](first T, n int, limit T) T {
	for range n {
		if first >= limit/2 {
			return limit
		}
		first *= 2
	}
	return min(first, limit)
}

// Reason is why a program ended.
type Reason string

// The reasons.
const (
	ReasonExited    Reason = "exited"    // by itself, with a code
	ReasonSignalled Reason = "signalled" // by a signal that the host did not send
	ReasonOrdered   Reason = "ordered"   // by Terminate, Kill or Close, whatever its exit code
	ReasonCPU       Reason = "limit:cpu"
	ReasonWall      Reason = "limit:wall"
	ReasonProcesses Reason = "limit:processes"
	ReasonDisk      Reason = "limit:disk"
)

// Exit is the end of a program and all its processes.
type Exit struct {
	Code   int            // exit code; -1 if a signal ended it
	Signal syscall.Signal // 0: no signal ended it
	Reason Reason
	// Ran is the time from start to end.
	Ran time.Duration
	// CPU is the processor time of the first process and the descendants that it waited for. MaxRSS is the largest memory
	// in use by one of them, in bytes.
	CPU    time.Duration
	MaxRSS int64
	// Left is how many other processes of the agent had to be killed after its first one had ended.
	Left int
}

// String describes the end for logs: "exited with code 3", "killed by signal 9 (killed), limit:wall".
func (e Exit) String() string {
	text := fmt.Sprintf("exited with code %d", e.Code)
	if e.Signal != 0 {
		text = fmt.Sprintf("killed by signal %d (%v)", int(e.Signal), e.Signal)
	}
	if e.Reason != ReasonExited && e.Reason != ReasonSignalled {
		text += ", " + string(e.Reason)
	}
	return text
}

// Cause returns the row of the table of faults for this end.
func (e Exit) Cause() Cause {
	switch {
	case e.Reason == ReasonOrdered:
		return CauseOrdered
	case e.Reason == ReasonProcesses:
		return CauseFlood
	case e.Reason == ReasonCPU, e.Reason == ReasonWall, e.Reason == ReasonDisk:
		return CauseLimit
	case e.Code == 0:
		return CauseFinished
	}
	return CauseFailed
}

// exitOf converts the system's status of an ended process. reason is why the host ended it, or "".
func exitOf(status syscall.WaitStatus, usage *syscall.Rusage, reason Reason, limits Limits) Exit {
	e := Exit{
		Code: status.ExitStatus(), Reason: ReasonExited,
		CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), MaxRSS: int64(usage.Maxrss) * rssUnit(),
	}
	if status.Signaled() {
		e.Code, e.Signal, e.Reason = -1, status.Signal(), ReasonSignalled
		// The system sends XCPU at the limit, and KILL to a process that continues.
		spent := limits.CPUSeconds > 0 && e.CPU >= time.Duration(limits.CPUSeconds)*time.Second
		if limits.CPUSeconds > 0 && (e.Signal == syscall.SIGXCPU || spent && e.Signal == syscall.SIGKILL) {
			e.Reason = ReasonCPU
		}
	}
	if reason != "" {
		e.Reason = reason
	}
	return e
}

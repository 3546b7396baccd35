package host

import (
	"fmt"
	"syscall"
	"time"
)

// Reason says why a program ended.
type Reason string

// The reasons.
const (
	ReasonExited    Reason = "exited"    // by itself, with a code
	ReasonSignalled Reason = "signalled" // by a signal that the host did not send
	ReasonOrdered   Reason = "ordered"   // by Terminate, Kill or Close, whatever code it left
	ReasonCPU       Reason = "limit:cpu"
	ReasonWall      Reason = "limit:wall"
	ReasonProcesses Reason = "limit:processes"
)

// Exit is the end of a program, once nothing of it is left.
type Exit struct {
	Code   int            // exit code; -1 where a signal ended it
	Signal syscall.Signal // 0 where none did
	Reason Reason
	// Ran is the time from start to end.
	Ran time.Duration
	// CPU is the processor time of the first process and the descendants it waited for; MaxRSS the most memory that one of
	// them had in use, in bytes.
	CPU    time.Duration
	MaxRSS int64
	// Left is how many other processes of the agent had to be killed when its first one had ended.
	Left int
}

// String is for logs: "exited with code 3", "killed by signal 9 (killed), limit:wall".
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

// Cause is the row of the table of faults that this end belongs to.
func (e Exit) Cause() Cause {
	switch {
	case e.Reason == ReasonOrdered:
		return CauseOrdered
	case e.Reason == ReasonProcesses:
		return CauseFlood
	case e.Reason == ReasonCPU, e.Reason == ReasonWall:
		return CauseLimit
	case e.Code == 0:
		return CauseFinished
	}
	return CauseFailed
}

// exitOf reads what the system says of an ended process. reason is why the host ended it, or nothing.
func exitOf(status syscall.WaitStatus, usage *syscall.Rusage, reason Reason, limits Limits) Exit {
	e := Exit{
		Code: status.ExitStatus(), Reason: ReasonExited,
		CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), MaxRSS: int64(usage.Maxrss) * rssUnit(),
	}
	if status.Signaled() {
		e.Code, e.Signal, e.Reason = -1, status.Signal(), ReasonSignalled
		// The system sends XCPU at the limit, and KILL to one that goes on.
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

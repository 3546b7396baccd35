package main

import (
	"context"
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// notStarted is the reason of an end without a beginning (schema.Exit).
const notStarted = "not started"

// exitStatus is the exit status of somebody else's program, handed on; there is nothing to add to it.
type exitStatus int

func (s exitStatus) Error() string { return "exit status " + strconv.Itoa(int(s)) }

// gone reports whether a process has ended and nothing of its program is left.
func gone(d *schema.Descriptor) bool {
	return d.State == terminated && d.OSPID == nil && (d.Exit != nil || d.Command == nil)
}

// ended is what the end of an agent's program means for the exit status of run.
func ended(d schema.Descriptor) error {
	end := d.Exit
	switch {
	case end == nil:
		return nil
	case end.Reason == notStarted:
		return fault.ProcessNotStarted.New("%s", escaped(why(end)))
	case end.Signal != nil:
		return exitStatus(128 + *end.Signal)
	case end.Code == nil:
		return exitStatus(exitError)
	case *end.Code != 0:
		return exitStatus(*end.Code)
	}
	return nil
}

// tellEnd says on stderr how a program ended, and how much it had asked of the kernel (PROTOCOL 9).
func (a *app) tellEnd(ctx context.Context, c *client.Client, d *schema.Descriptor) error {
	if d.Exit == nil || d.Exit.Reason == notStarted { // that is the error of run
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, usualTimeout, errTimeout)
	defer cancel()
	n, err := countCalls(ctx, c, d.PID)
	if err != nil {
		return err
	}
	a.say("pid %d (%s) %s after %s, %d refused: pwos audit log --pid %d", d.PID, escaped(d.AgentID), endText(d.Exit), n, n.refused, d.PID)
	return nil
}

// tally counts the calls of a process.
type tally struct {
	calls, refused int
	more           bool // there are more, which were not counted
}

// String says how many calls there were.
func (t tally) String() string {
	switch {
	case t.more:
		return fmt.Sprintf("more than %d calls", t.calls)
	case t.calls == 1:
		return "1 call"
	}
	return fmt.Sprintf("%d calls", t.calls)
}

// mostPages bounds what is read of the record to count calls.
const mostPages = 50

// countCalls counts what a process asked of the kernel, and what of it was refused.
func countCalls(ctx context.Context, c *client.Client, pid int64) (t tally, err error) {
	pages := 0
	return t, eachPage(ctx, c, schema.AuditLogInput{PID: &pid}, func(entries []auditEntry, more bool) bool {
		for i := range entries {
			if e := &entries[i]; !internal(e.Type) {
				t.calls++
				if refusal(e.Code) {
					t.refused++
				}
			}
		}
		pages++
		t.more = more && pages == mostPages
		return pages < mostPages
	})
}

// internal reports whether entries of the type are the kernel's own, which no agent asked for. An effect that the kernel has in an
// agent's name, such as Net.Connect, is the agent's call.
func internal(typ string) bool {
	row, ok := schema.Lookup(typ)
	return ok && row.Internal && row.Outcome == ""
}

// refusal reports whether an error of the code says that the caller may not, and not that it cannot be done: a denial (CAP 6).
func refusal(code int64) bool {
	return (&fault.Fault{Kind: fault.KindOf(int(code))}).Denied()
}

// endText is an end in words that follow its subject.
func endText(end *schema.Exit) string {
	switch {
	case end == nil:
		return "has not ended"
	case end.Reason == notStarted:
		return "could not be started: " + escaped(why(end))
	}
	text := "ended, nobody knows how"
	if end.Signal != nil {
		text = "was killed by " + signalName(*end.Signal)
	} else if end.Code != nil {
		text = fmt.Sprintf("exited %d", *end.Code)
	}
	switch end.Reason {
	case "exited", "signalled", "unknown":
		return text
	}
	return text + " (" + escaped(end.Reason) + ")"
}

// signalName is the name of a signal, or its number where it has none.
func signalName(n int64) string {
	if name := unix.SignalName(syscall.Signal(n)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}

// why says in words why an end came.
func why(end *schema.Exit) string {
	if end.Why != nil && *end.Why != "" {
		return *end.Why
	}
	return end.Reason
}

// value is what p points to, or zero.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// ordinal is a count of times in words: first, second, 12th.
func ordinal(n int64) string {
	switch {
	case n == 1:
		return "first"
	case n == 2:
		return "second"
	case n == 3:
		return "third"
	case n/10%10 != 1 && n%10 >= 1 && n%10 <= 3:
		return strconv.FormatInt(n, 10) + []string{"st", "nd", "rd"}[n%10-1]
	}
	return strconv.FormatInt(n, 10) + "th"
}

package main

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"github.com/promptware-os/pwos/schema"
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

// ended is what the end of an agent's program means for the exit status of run. Where the status alone does not say it,
// stderr does.
func (a *app) ended(d schema.Descriptor) error {
	end := d.Exit
	switch {
	case end == nil:
		return nil
	case end.Reason == notStarted:
		return &verdict{exitNotStarted, errors.New(escaped(why(end)))}
	case end.Reason != "exited":
		a.say("%s (pid %d) %s", escaped(d.AgentID), d.PID, endText(end))
	}
	switch {
	case end.Signal != nil:
		return exitStatus(128 + *end.Signal)
	case end.Code == nil:
		return exitStatus(exitError)
	case *end.Code != 0:
		return exitStatus(*end.Code)
	}
	return nil
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
		text = fmt.Sprintf("was ended by signal %d (%v)", *end.Signal, syscall.Signal(*end.Signal))
	} else if end.Code != nil {
		text = fmt.Sprintf("exited with code %d", *end.Code)
	}
	switch end.Reason {
	case "exited", "signalled", "unknown":
		return text
	case "ordered":
		return text + ", on order"
	}
	return text + " (" + escaped(end.Reason) + ")"
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

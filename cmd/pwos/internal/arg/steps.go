package arg

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Steps names steps of an agent: a step, several in a row, or without numbers those of its latest run.
type Steps struct {
	Agent    string
	From, To int64 // 0: none is named; To equals From for one step
}

// ParseSteps parses NAME, NAME:12 or NAME:3..8. A bare number is an entry of the record, so that agents are named here.
func ParseSteps(text string) (s Steps, err error) {
	name, which, found := cutLast(text, ":")
	if found && strings.Trim(which, "0123456789.") == "" {
		first, last, several := strings.Cut(which, "..")
		if !several {
			last = first
		}
		s.From, s.To = ordinal(first), ordinal(last)
		if name == "" || s.From == 0 || s.To < s.From {
			return s, fmt.Errorf("%q names no steps: claude:12 is one, claude:3..8 are several; \"pwos steps\" lists them", text)
		}
	} else {
		name = text
	}
	if number(name) {
		return s, fmt.Errorf("%q is an entry of the record, or a PID: steps are those of a name, as claude or claude:12", text)
	}
	agent, err := ParseAgent(name, Who{})
	s.Agent = agent.Name
	return s, err
}

// ordinal returns the number that text writes, 0 if it is none of at least 1.
func ordinal(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || text[0] == '+' {
		return 0
	}
	return n
}

// Since is where an undo begins: at a step, or at a time.
type Since struct {
	Step *Steps
	Time *time.Time
}

// ParseSince parses the step or the time at which an undo begins.
func ParseSince(text string, now time.Time) (s Since, err error) {
	at, err := ParseTime(text, now)
	if err == nil {
		s.Time = &at
		return s, nil
	}
	if !isStep(text) {
		return s, fmt.Errorf("%w; a step is claude:12", err)
	}
	step, err := ParseSteps(text)
	s.Step = &step
	return s, err
}

package execs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/effect/execs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/step"
	"github.com/promptware-os/pwos/schema"
)

func endOf(session, tool string, use *string) *schema.StepEndInput {
	return &schema.StepEndInput{Host: "h", Session: session, Tool: tool, Use: use}
}

func refusal(program string) *schema.StepRefused {
	return &schema.StepRefused{Program: program, Error: "policy.denied", Why: "no"}
}

// TestCalls: the end of a tool call has what was refused since its begin, once, and so has each that was open at the same time. What is
// refused while none is open, or of another agent, is in none.
func TestCalls(t *testing.T) {
	t.Parallel()
	var c execs.Calls
	c.Refused(7, refusal("before"))
	c.Begin(7, step.KeyOf("h", "s", "Bash", new("1")), "", "m")
	c.Refused(7, refusal("a"))
	c.Refused(7, refusal("a"))
	c.Refused(8, refusal("of another"))
	c.Begin(7, step.KeyOf("h", "s/sub", "Bash", nil), "", "m")
	c.Refused(7, refusal("b"))
	for _, tt := range []struct {
		end  *schema.StepEndInput
		want []schema.StepRefused
	}{
		{endOf("s", "Bash", nil), nil}, // another name
		{endOf("s", "Bash", new("1")), []schema.StepRefused{*refusal("a"), *refusal("b")}},
		{endOf("s", "Bash", new("1")), nil},
		{endOf("s", step.Every, nil), nil},
		{endOf("s/sub", step.Every, nil), []schema.StepRefused{*refusal("b")}},
	} {
		if got := c.End(7, tt.end); !cmp.Equal(got.List, tt.want) {
			t.Errorf("the end %v has %v", *tt.end, got)
		}
	}
	c.Begin(7, step.KeyOf("h", "s", "Bash", nil), "", "m")
	c.Refused(7, refusal("a"))
	c.Begin(7, step.KeyOf("h", "s", "Bash", nil), "", "m") // the end of the first was lost
	if got := c.End(7, endOf("s", "Bash", nil)); got.List != nil {
		t.Errorf("a call has what was refused before it: %v", got)
	}
	c.Begin(7, step.KeyOf("h", "s", "Bash", nil), "", "m")
	c.Refused(7, refusal("a"))
	c.Leave(7)
	if got := c.End(7, endOf("s", "Bash", nil)); got.List != nil {
		t.Errorf("after the end of its agent: %v", got)
	}
}

// TestCallsStep: the step of an exec is the last that began of those that are open.
func TestCallsStep(t *testing.T) {
	t.Parallel()
	var c execs.Calls
	var got []string
	look := func() { got = append(got, c.Step(7)+"|"+c.Step(8)) }
	look()
	c.Begin(7, step.KeyOf("h", "s", "Bash", new("1")), "a:1", "m1")
	look()
	c.Begin(7, step.KeyOf("h", "s", "Bash", new("2")), "a:2", "m2")
	c.Begin(7, step.KeyOf("h", "s", "Bash", new("3")), "", "m") // its directories are not kept
	look()
	c.End(7, endOf("s", "Bash", new("2")))
	look()
	c.End(7, endOf("s", step.Every, nil))
	look()
	if want := []string{"|", "a:1|", "a:2|", "a:1|", "|"}; !cmp.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
}

// TestCallsApproved: what is approved with a tool call may be executed in it, each once for each time that its command names it, with
// exactly these arguments: from the approval on until the call ends, and in no other agent's.
func TestCallsApproved(t *testing.T) {
	t.Parallel()
	var c execs.Calls
	by := kernel.Approval{ID: "q-1", Used: true}
	taken := func(agent int64, argv ...string) bool {
		a := c.Take(agent, argv)
		if a != nil && *a != by {
			t.Errorf("approved by %v", a)
		}
		return a != nil
	}
	first := step.KeyOf("h", "s", "Bash", new("1"))
	c.Approved(7, first, by, [][]string{{"git", "push"}, {"git", "push"}, {"make"}, {"go"}})
	if taken(8, "git", "push") || taken(7, "git") || taken(7, "git", "push", "x") {
		t.Error("what was not approved")
	}
	if !taken(7, "go") {
		t.Error("before the call begins, of which the host may have told nothing")
	}
	c.Begin(7, step.KeyOf("h", "s/sub", "Bash", new("1")), "", "m")
	for i, want := range []bool{true, true, false} {
		if taken(7, "git", "push") != want {
			t.Errorf("as often as it is named: %d", i)
		}
	}
	c.Begin(7, step.KeyOf("h", "s", "Bash", new("2")), "", "m")
	c.End(7, endOf("s", step.Every, nil))
	if !taken(7, "make") {
		t.Error("after another call has ended")
	}
	c.Approved(7, first, by, [][]string{{"make"}})
	c.Begin(7, first, "", "m")
	c.End(7, endOf("s", "Bash", new("1")))
	if taken(7, "make") {
		t.Error("after its call has ended")
	}
	c.Approved(7, first, by, [][]string{{"make"}})
	c.Approved(7, first, by, [][]string{{"go"}}) // the host asks again
	if taken(7, "make") {
		t.Error("what was approved before for the same call")
	}
	c.Leave(7)
	if taken(7, "go") {
		t.Error("after the end of its agent")
	}
}

// TestStepOf: a process belongs to the step in which it, or the eldest that it descends from, was started, also after the step; to none
// if that is not clear.
func TestStepOf(t *testing.T) {
	t.Parallel()
	var c execs.Calls
	first, second := step.KeyOf("h", "s", "Bash", new("1")), step.KeyOf("h", "s", "Bash", new("2"))
	pause := func() time.Time { time.Sleep(30 * time.Millisecond); return time.Now() }
	before := time.Now()
	pause()
	c.Begin(7, first, "a:1", "m1")
	in1 := pause()
	c.End(7, endOf("s", "Bash", new("1")))
	between := pause()
	pause()
	c.Begin(7, second, "a:2", "m2")
	in2 := pause()
	pause()
	c.Begin(7, first, "a:3", "m3")
	both := pause()
	for _, tt := range []struct {
		started []time.Time
		want    string
	}{
		{nil, ""},
		{[]time.Time{before}, ""},
		{[]time.Time{before, in1}, "a:1"},
		{[]time.Time{between}, ""},
		{[]time.Time{between, in2}, "a:2"},
		{[]time.Time{before, in1, in2}, "a:1"},
		{[]time.Time{both}, ""},
		{[]time.Time{in2, both}, "a:2"},
		{[]time.Time{both, in2}, ""},
	} {
		if got := c.StepOf(7, tt.started); got != tt.want {
			t.Errorf("what was started at %v is of %q, want %q", tt.started, got, tt.want)
		}
	}
	for name, want := range map[string]string{"a:1": "m1", "a:3": "m3", "a:4": "", "": ""} {
		if got := c.Message(7, name); got != want {
			t.Errorf("the message that began %q is %q, want %q", name, got, want)
		}
	}
	if got := c.StepOf(8, []time.Time{in1}); got != "" {
		t.Errorf("of another agent: %s", got)
	}
	c.Leave(7)
	if got := c.StepOf(7, []time.Time{in1}); got != "" {
		t.Errorf("after the end of its agent: %s", got)
	}
}

// TestCallsBounded: of many refusals the first are kept, and the others counted; of many open calls the last.
func TestCallsBounded(t *testing.T) {
	t.Parallel()
	var c execs.Calls
	for i := range 100 {
		c.Begin(7, step.KeyOf("h", "s", "Bash", new(fmt.Sprint(i))), "", "m")
	}
	for i := range 100 {
		c.Refused(7, refusal(fmt.Sprint(i)))
	}
	if got := c.End(7, endOf("s", "Bash", new("99"))); len(got.List) != 8 || got.More != 92 || got.List[7].Program != "7" {
		t.Errorf("of 100 refusals %d are kept, and %d counted", len(got.List), got.More)
	}
	if got := c.End(7, endOf("s", "Bash", new("35"))); got.List != nil {
		t.Error("more than 64 calls are open")
	}
	if got := c.End(7, endOf("s", "Bash", new("36"))); got.List == nil {
		t.Error("fewer than 64 calls are open")
	}
}

package host_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/host"
)

func TestParseRestart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]host.Restart{"": "never", "never": "never", "on-failure": "on-failure", "always": "always"} {
		if got, err := host.ParseRestart(text); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"Always", "on_failure", " never"} {
		if got, err := host.ParseRestart(text); got != "" || !errors.Is(err, host.ErrRestart) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// TestTable: the decision for a first end of each kind under each policy.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause   host.Cause
		fault   host.Fault
		ticks   int64
		restart [3]bool // never, on-failure, always
		revoke  bool
	}{
		{host.CauseOrdered, host.FaultNone, 0, [3]bool{false, false, false}, false},
		{host.CauseFinished, host.FaultNone, 0, [3]bool{false, false, true}, false},
		{host.CauseFailed, host.FaultRecoverable, 0, [3]bool{false, true, true}, false},
		{host.CauseLimit, host.FaultRecoverable, 0, [3]bool{false, true, true}, false},
		{host.CauseFlood, host.FaultQuarantine, 30, [3]bool{false, true, true}, false},
		{host.CauseEscape, host.FaultExile, 0, [3]bool{false, false, false}, true},
	} {
		for i, restart := range []host.Restart{host.RestartNever, host.RestartOnFailure, host.RestartAlways} {
			_, d := host.DefaultPolicy(restart).Decide(host.Record{}, c.cause, time.Second)
			if d.Fault != c.fault || d.BlockedTicks != c.ticks || d.Restart != c.restart[i] || d.Revoke != c.revoke || d.Why == "" {
				t.Errorf("%d under %s: %+v, want %+v", c.cause, restart, d, c)
			}
			if d.Restart != (d.Delay > 0) {
				t.Errorf("%d under %s: restart %v after %v", c.cause, restart, d.Restart, d.Delay)
			}
		}
	}
}

// TestCrashLoop: a program that always fails passes through the table to its end.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	p := host.DefaultPolicy(host.RestartOnFailure)
	var r host.Record
	for i, want := range []host.Decision{
		{Fault: host.FaultRecoverable, Restart: true, Delay: 1 * time.Second},
		{Fault: host.FaultRecoverable, Restart: true, Delay: 2 * time.Second},
		{Fault: host.FaultQuarantine, Restart: true, Delay: 4 * time.Second, BlockedTicks: 30},
		{Fault: host.FaultQuarantine, Restart: true, Delay: 8 * time.Second, BlockedTicks: 60},
		{Fault: host.FaultQuarantine, Restart: true, Delay: 16 * time.Second, BlockedTicks: 120},
		{Fault: host.FaultExile, Revoke: true},
	} {
		var d host.Decision
		r, d = p.Decide(r, host.CauseFailed, time.Millisecond)
		d.Why = ""
		if d != want {
			t.Errorf("fault %d: %+v, want %+v", i+1, d, want)
		}
	}
	if r.Restarts != 5 {
		t.Errorf("%d restarts", r.Restarts)
	}
}

// TestGoodRun: a good run resets the count of faults and the delay, so a program that fails once an hour is restarted
// forever.
func TestGoodRun(t *testing.T) {
	t.Parallel()
	p := host.DefaultPolicy(host.RestartOnFailure)
	r := host.Record{Faults: 5, Quick: 9}
	for i := range 100 {
		var d host.Decision
		r, d = p.Decide(r, host.CauseFailed, p.GoodRun)
		if d.Fault != host.FaultRecoverable || d.Delay != p.MinDelay || r.Faults != 1 || r.Restarts != i+1 {
			t.Fatalf("%d: %+v, %+v", i, r, d)
		}
	}
}

// TestAlwaysBacksOff: a program that finishes immediately under "always" commits no fault, and is restarted with growing
// delays.
func TestAlwaysBacksOff(t *testing.T) {
	t.Parallel()
	p := host.DefaultPolicy(host.RestartAlways)
	var r host.Record
	var d host.Decision
	for range 100 {
		r, d = p.Decide(r, host.CauseFinished, 0)
		if !d.Restart || d.Fault != host.FaultNone || d.Delay > p.MaxDelay {
			t.Fatalf("%+v", d)
		}
	}
	if d.Delay != p.MaxDelay || r.Faults != 0 {
		t.Errorf("%+v, %+v", r, d)
	}
}

// TestPolicyBounds: for any ends in any order, pauses stay within their bounds, exile is final for failures, and the same
// history gives the same decision.
func TestPolicyBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := host.DefaultPolicy(rapid.SampledFrom([]host.Restart{"never", "on-failure", "always"}).Draw(t, "restart"))
		p.Recoverable, p.Quarantines = rapid.IntRange(0, 70).Draw(t, "recoverable"), rapid.IntRange(0, 70).Draw(t, "quarantines")
		var r host.Record
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 5)).Draw(t, "causes") {
			ran := time.Duration(rapid.IntRange(0, 90).Draw(t, "ran")) * time.Second
			next, d := p.Decide(r, host.Cause(n), ran)
			if again, same := p.Decide(r, host.Cause(n), ran); again != next || same != d {
				t.Fatal("two decisions for the same history differ")
			}
			if d.Delay < 0 || d.Delay > p.MaxDelay || d.BlockedTicks < 0 || d.Revoke != (d.Fault == host.FaultExile) ||
				(d.BlockedTicks > 0) != (d.Fault == host.FaultQuarantine) || d.Restart && (p.Restart == "never" || d.Fault == host.FaultExile) {
				t.Fatalf("%+v", d)
			}
			r = next
		}
	})
}

package access_test

import (
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
)

// TestFailuresGrow: each failure is delayed longer than the last, up to a bound, until the user succeeds or pauses.
func TestFailuresGrow(t *testing.T) {
	t.Parallel()
	var f access.Failures
	fail := func(uid int, now time.Time) time.Duration {
		delay, release := f.Failed(uid, now)
		release()
		release() // twice is fine
		return delay
	}
	const ms = time.Millisecond
	for i, want := range []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 500 * ms, 500 * ms} {
		if got := fail(1, noon); got != want {
			t.Errorf("failure %d is delayed by %v, want %v", i+1, got, want)
		}
	}
	if got := fail(2, noon); got != 10*ms {
		t.Errorf("another user is delayed by %v", got)
	}
	if got := fail(1, noon.Add(time.Minute)); got != 10*ms {
		t.Errorf("after a quiet minute the delay is %v", got)
	}
	fail(1, noon.Add(time.Minute))
	f.Succeeded(1)
	if got := fail(1, noon.Add(time.Minute)); got != 10*ms {
		t.Errorf("after a good login the delay is %v", got)
	}
}

// TestFailuresAreBounded: memory is bounded for many users, and for many failures at once.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	var f access.Failures
	held := 0
	var release func()
	for uid := range 10_000 {
		delay, done := f.Failed(uid, noon.Add(time.Duration(uid)*time.Microsecond))
		if delay > 0 {
			held, release = held+1, done
		}
	}
	if held != 16 {
		t.Errorf("%d refusals are delayed at once", held)
	}
	release()
	if delay, _ := f.Failed(9_999, noon.Add(time.Second)); delay != 20*time.Millisecond {
		t.Errorf("the latest user is delayed by %v", delay)
	}
	if delay, _ := f.Failed(0, noon.Add(time.Second)); delay != 0 {
		t.Error("two failures were delayed in the one released place")
	}
	var one access.Failures
	_, done := one.Failed(0, noon)
	done()
	for uid := 1; uid <= 256; uid++ {
		_, done := one.Failed(uid, noon.Add(time.Second))
		done()
	}
	if delay, _ := one.Failed(0, noon.Add(2*time.Second)); delay != 10*time.Millisecond {
		t.Errorf("the user that was forgotten first is delayed by %v", delay)
	}
}

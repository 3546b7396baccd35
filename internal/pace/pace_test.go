package pace_test

import (
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/pace"
)

// TestTake: the first that asks after a pause may try, the pauses double up to the last one, and a success ends them.
func TestTake(t *testing.T) {
	t.Parallel()
	p := pace.Pace{First: 100 * time.Millisecond, Last: 300 * time.Millisecond}
	now := time.Unix(1, 0)
	for i, pause := range []time.Duration{100, 200, 300, 300} {
		pause *= time.Millisecond
		if wait := p.Take(now); wait != 0 {
			t.Errorf("try %d waits for %v", i, wait)
		}
		if wait := p.Take(now.Add(time.Millisecond)); wait != pause-time.Millisecond {
			t.Errorf("another waits for %v after try %d, want %v", wait, i, pause-time.Millisecond)
		}
		now = now.Add(pause)
	}
	p.Take(now)
	p.Reset()
	if wait := p.Take(now); wait != 0 {
		t.Errorf("after a success, the next waits for %v", wait)
	}
}

package kernel_test

import (
	"strconv"
	"testing"

	"github.com/promptware-os/pwos/kernel"
)

// TestRecent: a change after the number is found, one before it is not, and a forgotten one counts as a change.
func TestRecent(t *testing.T) {
	t.Parallel()
	var r kernel.Recent
	r.Changed("o", "a")
	r.Publish()
	since := r.Shown()
	if since != 1 || r.Since(since, "o", "a") || r.Since(since, "o", "b") {
		t.Errorf("Since reports a change after change %d", since)
	}
	r.Changed("o", "b")
	if r.Shown() != since {
		t.Error("a change is shown before it is published")
	}
	if !r.Since(since, "o", "b") || r.Since(since, "o", "a") || r.Since(since, "other", "b") {
		t.Error("Since does not report exactly the changed key")
	}
	if !r.Since(since+5, "o", "a") {
		t.Error("Since trusts a number that was not used yet")
	}
	for i := range 5000 {
		r.Changed("o", strconv.Itoa(i))
	}
	if !r.Since(since, "o", "a") {
		t.Error("after more changes than are kept, Since reports no change")
	}
	r.Publish()
	since = r.Shown()
	if r.Since(since, "o", "a") {
		t.Error("Since reports a change without one")
	}
	r.Reset()
	r.Changed("o", "b")
	if r.Since(since, "o", "a") {
		t.Error("a state that was rebuilt of the same journal has the changes that were published")
	}
	if !r.Since(since-1, "o", "a") {
		t.Error("changes before a state was rebuilt are unknown")
	}
}

// TestRecentCountsOn: a rebuilt state uses no number twice.
func TestRecentCountsOn(t *testing.T) {
	t.Parallel()
	var r kernel.Recent
	r.Changed("o", "a")
	r.Changed("o", "a")
	r.Reset()
	r.Changed("o", "a")
	r.Publish()
	if r.Shown() != 3 {
		t.Errorf("change %d, want 3", r.Shown())
	}
}

package price_test

import (
	"slices"
	"testing"

	"github.com/promptware-os/pwos/effect/price"
)

// TestOf: the configuration's price of a model counts before the shipped one, and a model without a price costs the dearest that is known
// of its vendor.
func TestOf(t *testing.T) {
	t.Parallel()
	own := price.Table{"claude-haiku-4-5": {Input: 7, Output: 8}, "mine-*": {Input: 1, Output: 2}, "mine-large*": {Input: 3, Output: 4}, "gpt-house": {Input: 1, Output: 99}}
	for _, tt := range []struct {
		model string
		in    float64
		out   float64
		known bool
	}{
		{"claude-haiku-4-5", 7, 8, true},
		{"claude-opus-5-5", 4, 20, true},
		{"claude-opus-5-5-20260901", 4, 20, true},
		{"gpt-6-sol-2026-09-01", 2, 10, true},
		{"claude-opus-5-5-thinking", 7, 20, false},
		{"claude-new", 7, 20, false},
		{"anthropic/claude-new", 7, 20, false},
		{"gpt-7", 2, 99, false},
		{"gemini-9", 2, 12, false},
		{"mine-1", 1, 2, true},
		{"mine-large-1", 3, 4, true},
		{"unheard-of", 7, 99, false},
		{"", 7, 99, false},
	} {
		if p, known := own.Of(tt.model); p.Input != tt.in || p.Output != tt.out || known != tt.known {
			t.Errorf("Of(%q) = %+v, %v; want %v, %v, %v", tt.model, p, known, tt.in, tt.out, tt.known)
		}
	}
	if p, known := price.Table(nil).Of("claude-sonnet-5-5"); !known || p != (price.Price{Input: 2, Output: 10, CacheRead: 2, CacheWrite: 2}) {
		t.Errorf("without a configuration: %+v, %v", p, known)
	}
}

func TestShipped(t *testing.T) {
	t.Parallel()
	list := price.Shipped()
	if !slices.IsSortedFunc(list, func(a, b price.Model) int {
		return slices.Compare([]string{a.Vendor, a.Model}, []string{b.Vendor, b.Model})
	}) {
		t.Error("the models are not in order")
	}
	for _, m := range list {
		if m.Input <= 0 || m.Output < m.Input {
			t.Errorf("%+v", m)
		}
	}
}

package resource_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel/domaintest"
)

// TestTenTenthsAreOne: the ledger adds decimals exactly, and a full release leaves 0.
func TestTenTenthsAreOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 10 {
		reserved := fmt.Sprintf("0.%d", i+1)
		if i == 9 {
			reserved = "1"
		}
		b.must(1, "Syscall.Alloc", `{"resource_id":"cpu","amount":0.1}`, `{"resource_id":"cpu","amount":0.1,"reserved":`+reserved+`}`)
	}
	b.must(1, "Syscall.Query", `{"resource_id":"cpu"}`, `{"available":0,"capacity":1,"utilization":1}`)
	for range 10 {
		b.must(1, "Syscall.Release", `{"resource_id":"cpu","amount":0.1}`, `{"resource_id":"cpu","amount":0.1}`)
	}
	if got := domaintest.Snapshot(t, b.ledger); len(got) != 0 {
		t.Errorf("left with %s", got)
	}
}

// TestAmounts: each number of the wire, however large or small, means the decimal that people read, is shown as that,
// and can be released as that.
func TestAmounts(t *testing.T) {
	t.Parallel()
	tests := []struct{ written, want string }{
		{"0.1", "0.1"},
		{"1.0", "1"},
		{"1e2", "100"},
		{"123456789.123456789", "123456789.12345679"}, // more digits than a JSON number is sure to keep
		{"9007199254740993", "9007199254740992"},
		{"9007199254740991", "9007199254740991"},
		{"17179869184", "17179869184"},
		{"1152921504606846976", "1152921504606847000"}, // the shortest decimal, as programs print it
		{"1e-7", "0.0000001"},
		{"1e300", "1" + strings.Repeat("0", 300)},
		{"5e-324", "0." + strings.Repeat("0", 323) + "5"},
	}
	for _, tt := range tests {
		b := newBench(t)
		b.ledger = newLedger(t, map[string]float64{"gpu": 1.7e308}, b.tokens)
		b.tokens.grant(1, map[string]float64{"gpu": 1.7e308})
		b.must(1, "Syscall.Alloc", `{"resource_id":"gpu","amount":`+tt.written+`}`, `{"resource_id":"gpu","amount":`+tt.want+`,"reserved":`+tt.want+`}`)
		b.must(1, "Syscall.Release", `{"resource_id":"gpu","amount":`+tt.want+`}`, `{"resource_id":"gpu","amount":`+tt.want+`}`)
	}
}

// TestTheLeastBesideTheMost: the smallest amount counts, and fits a line, beside the largest.
func TestTheLeastBesideTheMost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ledger = newLedger(t, map[string]float64{"gpu": 1e308}, b.tokens)
	b.tokens.grant(1, map[string]float64{"gpu": 1e308})
	b.alloc(1, "gpu", "1e308")
	b.must(1, "Syscall.Release", `{"resource_id":"gpu","amount":5e-324}`, `{"resource_id":"gpu","amount":0.`+strings.Repeat("0", 323)+`5}`)
	if _, err := b.run(1, "Syscall.Alloc", `{"resource_id":"gpu","amount":1e-323}`); err == nil {
		t.Error("more than there is was allocated")
	}
	b.alloc(1, "gpu", "5e-324")
	b.must(1, "Syscall.Query", `{"resource_id":"gpu"}`, `{"available":0,"capacity":1`+strings.Repeat("0", 308)+`,"utilization":1}`)
}

package kernel_test

import (
	"slices"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// origins is a process table that knows nothing but whose a process is.
type origins map[int64]string

func (o origins) Process(pid int64) *schema.Descriptor {
	origin, ok := o[pid]
	if !ok {
		return nil
	}
	return &schema.Descriptor{PID: pid, Origin: origin}
}

// TestVisible: the operator knows of every process, an agent of those of its origin alone; of the forgotten nobody knows whose
// they were.
func TestVisible(t *testing.T) {
	t.Parallel()
	table := origins{1: "a", 2: "a", 3: "b", 4: ""}
	for _, tt := range []struct {
		caller int64
		origin string
		seen   []int64
	}{
		{kernel.Operator, "a", []int64{1, 2, 3, 4}},
		{1, "a", []int64{1, 2}},
		{3, "b", []int64{3}},
		{9, "c", nil},
	} {
		var seen []int64
		for pid := int64(0); pid < 6; pid++ {
			if kernel.Visible(table, &kernel.Call{PID: tt.caller, Origin: tt.origin}, pid) != nil {
				seen = append(seen, pid)
			}
		}
		if !slices.Equal(seen, tt.seen) {
			t.Errorf("pid %d of %s sees %v, want %v", tt.caller, tt.origin, seen, tt.seen)
		}
	}
}

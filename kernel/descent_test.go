package kernel_test

import (
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// parents is a process table that knows nothing but who spawned whom.
type parents map[int64]int64

func (p parents) Process(pid int64) *schema.Descriptor {
	parent, ok := p[pid]
	if !ok {
		return nil
	}
	return &schema.Descriptor{PID: pid, ParentPID: parent}
}

func TestDescends(t *testing.T) {
	t.Parallel()
	family := parents{1: 0, 2: 1, 3: 2, 4: 1, 5: 0, 8: 9, 9: 8, 10: 10, 11: 7}
	tests := []struct {
		pid, ancestor int64
		want          bool
	}{
		{2, 1, true},
		{3, 1, true},
		{3, 2, true},
		{4, 1, true},
		{1, 0, true},
		{3, 0, true},
		{1, 1, false},
		{1, 2, false},
		{4, 2, false},
		{5, 1, false},
		{6, 1, false},  // never was
		{11, 1, false}, // its parent never was
		{0, 0, false},
		{8, 1, false}, // a damaged table does not hang the kernel
		{9, 1, false},
		{10, 1, false},
	}
	for _, tt := range tests {
		if got := kernel.Descends(family, tt.pid, tt.ancestor); got != tt.want {
			t.Errorf("%d descends from %d: %v", tt.pid, tt.ancestor, got)
		}
	}
}

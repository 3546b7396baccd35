package main_test

import (
	"slices"
	"strings"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/schema"
)

// Each process stands below its parent, siblings by PID, and nobody is left out.
func TestTreeOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		parents map[int64]int64 // by PID
		pids    []int64
		depths  []int
	}{
		{"nothing", nil, nil, nil},
		{"no families", map[int64]int64{1: 0, 2: 0}, []int64{1, 2}, []int{0, 0}},
		{"families", map[int64]int64{1: 0, 2: 0, 3: 1, 4: 3, 5: 1, 6: 2}, []int64{1, 3, 4, 5, 2, 6}, []int{0, 1, 2, 1, 0, 1}},
		{"a parent that is not listed", map[int64]int64{5: 2, 6: 5, 7: 0}, []int64{5, 6, 7}, []int{0, 1, 0}},
	} {
		var list []schema.Descriptor
		for pid := range int64(10) {
			if parent, ok := tt.parents[pid]; ok {
				list = append(list, schema.Descriptor{PID: pid, ParentPID: parent})
			}
		}
		pids, depths := pwos.TreeOf(list)
		if !slices.Equal(pids, tt.pids) || !slices.Equal(depths, tt.depths) {
			t.Errorf("%s: %v at depths %v, want %v at %v", tt.name, pids, depths, tt.pids, tt.depths)
		}
	}
}

// A tree may be as deep as agents make it.
func TestDeepTree(t *testing.T) {
	t.Parallel()
	const deep = 100_000
	list := make([]schema.Descriptor, deep)
	for i := range list {
		list[i] = schema.Descriptor{PID: int64(i + 1), ParentPID: int64(i)}
	}
	pids, depths := pwos.TreeOf(list)
	if len(pids) != deep || pids[deep-1] != deep || depths[deep-1] != deep-1 {
		t.Errorf("%d processes, want all %d, the last one deepest", len(pids), deep)
	}
}

// No agent keeps others from being seen by what it is called, or by what it runs.
func TestRowIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x\x1b", 128)
	row, err := pwos.Row(schema.Descriptor{PID: 7, AgentID: long, State: "RUNNING", Hosted: schema.Hosted{Command: []string{long}}})
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(row, "|"); len(text) > 140 || strings.Contains(text, "\x1b") || !strings.HasPrefix(text, `7|x\u001bx`) {
		t.Errorf("it is shown as %q", text)
	}
}

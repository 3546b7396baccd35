package view_test

import (
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// The choice stays on its process while that is there, stays within the list, and can be seen.
func TestChosen(t *testing.T) {
	t.Parallel()
	pids := []int64{1, 2, 3, 4, 5}
	for _, tt := range []struct {
		name       string
		pids       []int64
		room       int
		chosen     int64
		moves      []int
		now, first int64
	}{
		{"nothing was chosen", pids, 3, 0, []int{0}, 1, 1},
		{"down", pids, 3, 1, []int{1, 1}, 3, 1},
		{"down and out of sight", pids, 3, 1, []int{1, 1, 1}, 4, 2},
		{"the end", pids, 3, 5, []int{1}, 5, 3},
		{"up again", pids, 3, 1, []int{1, 1, 1, -1, -1, -1}, 1, 1},
		{"above the beginning", pids, 3, 1, []int{-1}, 1, 1},
		{"the chosen one is gone", pids, 3, 9, []int{0}, 1, 1},
		{"nobody is there", nil, 3, 9, []int{1}, 0, 0},
	} {
		if now, first := chosen(tt.pids, tt.room, tt.chosen, tt.moves...); now != tt.now || first != tt.first {
			t.Errorf("%s: %d is chosen and %d shown first, want %d and %d", tt.name, now, first, tt.now, tt.first)
		}
	}
}

// chosen moves top's choice over rows of processes of which room are shown: the PID that is chosen then, and the first shown.
func chosen(pids []int64, room int, chosen int64, moves ...int) (now, first int64) {
	top := &view.Top{Rows: room, Chosen: chosen}
	for _, pid := range pids {
		top.Processes = append(top.Processes, view.Process{Descriptor: schema.Descriptor{PID: pid}})
	}
	for _, by := range moves {
		top.Choose(by)
	}
	if len(top.Visible()) > 0 {
		first = top.Visible()[0].PID
	}
	return top.Chosen, first
}

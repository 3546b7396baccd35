package actors_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/actors"
)

func TestCredits(t *testing.T) {
	t.Parallel()
	const all, frames = actors.WindowBytes, actors.WindowFrames
	type held struct{ size, times int }
	tests := []struct {
		name string
		held []held // taken earlier
		give [2]int // frames and bytes that were returned
		size int
		want bool
	}{
		{name: "nothing in flight", size: 1, want: true},
		{name: "the whole window", size: all, want: true},
		{name: "more than the window, alone", size: 10 * all, want: true},
		{name: "more than the window, beside another", held: []held{{0, 1}}, size: all + 1},
		{name: "the last byte", held: []held{{all - 1, 1}}, size: 1, want: true},
		{name: "one byte too many", held: []held{{all, 1}}, size: 1},
		{name: "no bytes where there are none left", held: []held{{all, 1}}, size: 0, want: true},
		{name: "beside one that is larger than the window", held: []held{{2 * all, 1}}, size: 0},
		{name: "the last frame", held: []held{{1, frames - 1}}, size: 1, want: true},
		{name: "one frame too many", held: []held{{0, frames}}, size: 0},
		{name: "frames given back", held: []held{{1, frames}}, give: [2]int{1, 1}, size: 1, want: true},
		{name: "bytes given back", held: []held{{all / 2, 2}}, give: [2]int{1, all / 2}, size: all / 2, want: true},
		{name: "too few bytes given back", held: []held{{all / 2, 2}}, give: [2]int{1, all / 2}, size: all/2 + 1},
		{name: "all given back", held: []held{{2 * all, 1}}, give: [2]int{1, 2 * all}, size: 2 * all, want: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var w actors.Window
			for _, h := range test.held {
				for range h.times {
					w.Take(h.size)
				}
			}
			w.Give(test.give[0], test.give[1])
			if got := w.Take(test.size); got != test.want {
				t.Errorf("Take(%d): %t", test.size, got)
			}
		})
	}
}

// TestCreditsProperty takes and returns credits: those that are taken never exceed the window, unless it is one frame, and
// returned ones can be taken again.
func TestCreditsProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var w actors.Window
		var out []int
		bytes := 0
		for range rapid.IntRange(0, 400).Draw(t, "steps") {
			size := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, actors.WindowBytes/2), rapid.IntRange(actors.WindowBytes, 2*actors.WindowBytes)).Draw(t, "size")
			fits := len(out) == 0 || len(out) < actors.WindowFrames && bytes+size <= actors.WindowBytes
			if got := w.Take(size); got != fits {
				t.Fatalf("Take(%d) with %d frames of %d bytes out: %t", size, len(out), bytes, got)
			}
			if fits {
				out, bytes = append(out, size), bytes+size
			}
			if len(out) > 0 && (!fits || rapid.Bool().Draw(t, "give")) {
				w.Give(1, out[0])
				bytes -= out[0]
				out = out[1:]
			}
		}
	})
}

// TestCreditsGrow shows that the content of a frame's reference fits the window, or waits until all other frames are
// answered.
func TestCreditsGrow(t *testing.T) {
	t.Parallel()
	var w actors.Window
	w.Take(1)
	w.Take(1)
	if !w.Grow(actors.WindowBytes - 2) {
		t.Error("credits within the window are refused")
	}
	if w.Grow(1) {
		t.Error("credits beyond the window are granted while another frame has some")
	}
	w.Give(1, 1)
	if !w.Grow(10 * actors.WindowBytes) {
		t.Error("credits beyond the window are refused although no other frame has some")
	}
}

package actors_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/actors"
)

func TestCredits(t *testing.T) {
	t.Parallel()
	const all, frames = actors.WindowBytes, actors.WindowFrames
	type held struct{ size, times int }
	tests := []struct {
		name string
		held []held // taken before
		give [2]int // frames and bytes, given back then
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
			synctest.Test(t, func(t *testing.T) {
				c := actors.NewCredits()
				for _, h := range test.held {
					for range h.times {
						c.Take(h.size)
					}
				}
				c.Give(test.give[0], test.give[1])
				taken := make(chan bool, 1)
				if got := c.TryTake(test.size); got != test.want {
					t.Errorf("TryTake(%d): %t", test.size, got)
				} else if got {
					return
				}
				go func() { taken <- c.Take(test.size) }()
				synctest.Wait()
				select {
				case <-taken:
					t.Errorf("Take(%d) does not wait where TryTake is refused", test.size)
				default:
				}
				c.Close()
				if <-taken {
					t.Errorf("Take(%d) is granted by close", test.size)
				}
			})
		})
	}
}

// TestCreditsClosed shows that nothing is granted after close, whatever was given back.
func TestCreditsClosed(t *testing.T) {
	t.Parallel()
	c := actors.NewCredits()
	c.Close()
	c.Give(1, 1)
	if c.TryTake(1) {
		t.Error("TryTake is granted")
	}
	if c.Take(1) {
		t.Error("Take is granted")
	}
}

// TestCreditsUnderLoad has one goroutine take, as a reader does, while others give back: what is out never exceeds the
// window, unless it is one frame, and everything is granted in the end.
func TestCreditsUnderLoad(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(
			rapid.IntRange(0, 100),
			rapid.IntRange(0, actors.WindowBytes/2),
			rapid.IntRange(actors.WindowBytes, 2*actors.WindowBytes),
		), 0, 400).Draw(t, "sizes")
		together := rapid.IntRange(1, 5).Draw(t, "frames given back together")
		c := actors.NewCredits()
		var mu sync.Mutex
		var frames, bytes int
		granted := make(chan int, len(sizes))
		var givers sync.WaitGroup
		for range 3 {
			givers.Go(func() {
				for size := range granted {
					n := 1
				gather:
					for n < together {
						select {
						case more, ok := <-granted:
							if !ok {
								break gather
							}
							size, n = size+more, n+1
						default:
							break gather // what is held here must not be waited for
						}
					}
					mu.Lock()
					frames, bytes = frames-n, bytes-size
					mu.Unlock()
					c.Give(n, size)
				}
			})
		}
		var fault string
		for i, size := range sizes {
			if !c.TryTake(size) && !c.Take(size) {
				fault = fmt.Sprintf("Take(%d) is refused", size)
			}
			mu.Lock()
			if frames, bytes = frames+1, bytes+size; frames > 1 && (frames > actors.WindowFrames || bytes > actors.WindowBytes) {
				fault = fmt.Sprintf("%d frames of %d bytes are out after frame %d", frames, bytes, i)
			}
			mu.Unlock()
			granted <- size
		}
		close(granted)
		givers.Wait()
		if fault != "" {
			t.Errorf("%s", fault)
		}
		if frames != 0 || bytes != 0 {
			t.Errorf("%d frames of %d bytes were not given back", frames, bytes)
		}
	})
}

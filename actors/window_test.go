package actors_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/schema"
)

// TestWindow shows the cost of a client that sends and never reads: the kernel reads only the window, and one frame that
// waits for room. Other clients are served meanwhile, and when it reads at last, no answer is missing.
func TestWindow(t *testing.T) {
	t.Parallel()
	const frames = 1000
	size := 10_000 + len(ping("000", `""`))
	tests := []struct {
		name    string
		payload string
		taken   int
	}{
		{name: "by frames", payload: "1", taken: actors.WindowFrames + 1},
		{name: "by bytes", payload: `"` + strings.Repeat("x", 10_000) + `"`, taken: actors.WindowBytes/size + 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := start(t, newFake())
				l := newLink(schema.OsMessage, schema.MaxLine, 1) // so that not even one answer fits
				silent, neighbour := s.serve(l), s.connect()
				var want []string
				for i := range frames {
					id := fmt.Sprintf("%03d", i)
					silent.send(ping(id, test.payload))
					want = append(want, id)
				}
				synctest.Wait()
				if got := int(l.taken.Load()); got != test.taken {
					t.Errorf("%d frames read from a client that does not read, want %d", got, test.taken)
				}
				neighbour.send(ping("n", "2"))
				expect(t, neighbour, `n {"payload":2}`)

				silent.endInput()
				l.out.widen(unbounded)
				checkCauses(t, want, silent.rest())
			})
		})
	}
}

// TestWindowMoves shows that each answer that is read admits exactly one more frame.
func TestWindowMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const frames = 3 * actors.WindowFrames
		const unread = 1 // answers whose end fits the link while their beginning was read
		s := start(t, newFake())
		l := newLink(schema.OsMessage, schema.MaxLine, 100)
		c := s.serve(l)
		for i := range frames {
			c.send(ping(fmt.Sprint(i), "1"))
		}
		for read := range int64(frames) {
			synctest.Wait()
			if got := l.taken.Load(); got > read+unread+actors.WindowFrames+1 {
				t.Fatalf("%d frames read after the client has read %d answers", got, read)
			}
			if a := c.next(); a.Meta.Causation != fmt.Sprint(read) {
				t.Fatalf("answer %d names request %s", read, a.Meta.Causation)
			}
		}
	})
}

// TestEventsLeaveWindow shows that frames without an answer use no window.
func TestEventsLeaveWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, newFake())
		c := s.connect()
		for range 2 * actors.WindowFrames {
			c.send(frame(schema.OsMessage, schema.KindEvent, "Some.Thing", "1", "e"))
		}
		c.send(ping("a", "1"))
		expect(t, c, `a {"payload":1}`)
	})
}

// TestFrameLargerThanWindow shows that the window limits what is in flight in addition to a frame, not the frame itself.
func TestFrameLargerThanWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, newFake())
		l := newLink(schema.OsMessage, schema.MaxEventLine, 64<<10)
		c := s.serve(l)
		huge := `"` + strings.Repeat("x", 2*actors.WindowBytes) + `"`
		c.send(ping("a", "1"), ping("b", huge), ping("c", "2"), ping("d", huge), ping("e", huge), ping("f", "3"))
		c.endInput()
		var got []string
		for range 6 {
			a := c.next()
			got = append(got, fmt.Sprint(a.Meta.Causation, " ", len(a.Data)))
		}
		size := len(huge) + len(`{"payload":}`)
		want := []string{"a 13", fmt.Sprint("b ", size), "c 13", fmt.Sprint("d ", size), fmt.Sprint("e ", size), "f 13"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		<-c.done
	})
}

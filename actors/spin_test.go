package actors_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/schema"
)

// TestWindowOfAgentRests shows that the loop is idle while an agent, whose account has room, does not read: its window is
// full, and only its own answers make room.
func TestWindowOfAgentRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := bounded(t, actors.Bounds{InFlightBytes: 1 << 20, JournalBytesPerSecond: 64 << 20, JournalBurstBytes: 64 << 20})
		l := newLink(schema.OsMessage, schema.MaxLine, 1)
		silent := s.serveAs(l, 7)
		var want []string
		for i := range 300 {
			id := fmt.Sprintf("%03d", i)
			silent.send(ping(id, "1"))
			want = append(want, id)
		}
		synctest.Wait() // never returns while the loop runs turns
		silent.endInput()
		l.out.widen(unbounded)
		checkCauses(t, want, silent.rest())
	})
}

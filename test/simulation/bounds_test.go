package simulation_test

import (
	"fmt"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/test/authority/model"
)

// The bounds of a connection (its window, in frames) and of each agent.
const window = 128

var bounds = actors.Bounds{InFlightBytes: 4 << 10, JournalBytesPerSecond: 32 << 10, JournalBurstBytes: 48 << 10}

// slack is how much a connection may read beyond its credits, in bytes: the rest of one read, and of the frame before it.
const slack = mostRead + 2<<10

// bounded checks that no connection, agent or mailbox exceeds its bounds.
func (w *world) bounded() error {
	taken, conns := make(map[int64]int), make(map[int64]int)
	for _, c := range w.clients {
		if len(c.pending) > window {
			if most := c.pending[window-1].end + len(c.pending[window].frame) + slack; c.link.taken > most {
				return fmt.Errorf("client %d: the kernel has read %d bytes, and may %d: so much is not answered", c.number, c.link.taken, most)
			}
		}
		if len(c.pending) > 0 {
			first := c.pending[0]
			taken[c.pid] += max(0, c.link.taken-(first.end-len(first.frame)))
		}
		conns[c.pid]++
	}
	for pid, bytes := range taken {
		if most := int(bounds.InFlightBytes) + conns[pid]*slack; pid != model.Operator && bytes > most {
			return fmt.Errorf("pid %d: %d bytes of requests are in flight, it may have %d", pid, bytes, most)
		}
	}
	for pid := range int64(len(w.oracle.Procs) + 1) {
		n := 0
		for _, l := range w.oracle.boxOf(pid).Letters {
			if l.ExpiresAtTick == nil {
				n++
			}
		}
		if n > boxCapacity {
			return fmt.Errorf("mailbox of %d holds %d messages, and may hold %d", pid, n, boxCapacity)
		}
	}
	return nil
}

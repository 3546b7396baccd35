package actors_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel/idempotency"
)

// TestLead shows that a kernel answers nothing that another one may know better, from the moment at which another may lead,
// whether it has noticed that or not: no query, and no command that a majority has. The operator is answered from the disk.
// Everything continues when no other kernel can lead.
func TestLead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Bool
		s := startHosting(t, faultfs.NewDisk(), newRecorders().domains(), idempotency.New(), textLog, actors.Hosting{},
			&actors.Quorum{Patience: quorumPatience, Leads: held.Load})
		a, b, c := s.connect(), s.connect(), s.connect()
		a.send(get("a"))
		expectNothing(t, a) // another kernel led before, and may still answer
		held.Store(true)
		s.kernel.Lead(true)
		expect(t, a, `a ""`)
		a.send(set("b", "x"))
		expectNothing(t, a)
		s.kernel.Acknowledge(2)
		expect(t, a, "b 1")

		held.Store(false) // a paused machine resumes: the kernel has not been notified yet
		a.send(get("c"))
		expectNothing(t, a)
		b.send(set("d", "y"))
		synctest.Wait()
		s.kernel.Acknowledge(4)
		expectNothing(t, b)

		s.kernel.Lead(false)
		time.Sleep(quorumPatience / 4)
		expectErrors(t, a, "c cluster.away")
		expectErrors(t, b, "d cluster.unknown_outcome")
		a.send(set("e", "z"))
		expectErrors(t, a, "e cluster.away")
		c.send(processes("f"))
		expect(t, c, `f ""`)
		a.send(get("g"))
		expectNothing(t, a)

		held.Store(true)
		s.kernel.Lead(true)
		expect(t, a, `g "x y"`)
		a.send(set("h", "z"))
		expectNothing(t, a)
		s.kernel.Acknowledge(100)
		expect(t, a, "h 3")
		s.endCleanly()
	})
}

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

// TestLead shows that a kernel answers nothing that another one may know better, from the moment at which another may lead, be that
// noticed or not: no query, and no command that a majority has. The operator is answered from the disk. All goes on once no other leads.
func TestLead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var held atomic.Bool
		s := startHosting(t, faultfs.NewDisk(), newLibrary().domains(), idempotency.New(), textLog, actors.Hosting{},
			&actors.Quorum{Patience: quorumPatience, Leads: held.Load})
		a, b, c := s.connect(), s.connect(), s.connect()
		a.send(get("a"))
		expectNothing(t, a) // another one led before, and may answer yet
		held.Store(true)
		s.kernel.Lead(true)
		expect(t, a, `a ""`)
		a.send(set("b", "x"))
		expectNothing(t, a)
		s.kernel.Acknowledge(2)
		expect(t, a, "b 1")

		held.Store(false) // a frozen machine wakes: nobody has told the kernel yet
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

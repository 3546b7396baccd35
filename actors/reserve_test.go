package actors_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const reserve = 16 << 10

// startReserving starts a kernel whose journal has a reserve.
func startReserving(t tb, domains map[schema.Domain]kernel.Domain, hosting actors.Hosting) *system {
	return startHosting(t, faultfs.NewDisk(), domains, idempotency.New(), textLog, hosting, reserving(reserve))
}

// fill lets other files take the disk, and the journal all of it except for its reserve.
func (s *system) fill(c *client) {
	s.t.Helper()
	s.disk.Leave(0)
	for range 1000 {
		c.send(processes("fill"))
		if line, err := c.lines.Next(); err != nil || !strings.Contains(string(line), `"kernel":`) {
			return // it no longer has an entry
		}
	}
	s.t.Fatalf("the disk was never full")
}

func terminate(id string, pid int) string {
	return command(id, "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid))
}

func revoke(id string, pid int) string {
	return command(id, "Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, pid))
}

// TestUrgentOnAFullDisk shows that the operator can end processes, revoke tokens and end the kernel on a full disk, with
// entries on disk, while other calls are refused: a thousand refusals, by any caller, have no effect.
func TestUrgentOnAFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		states[schema.Process].decide = func(call *kernel.Call, _ []string) (kernel.Result, bool, error) {
			if in, ok := call.Input.(*schema.TerminateInput); ok && in.TargetPID == 404 {
				return kernel.Result{}, true, fault.MemoryNotFound.New("no such process")
			}
			return kernel.Result{}, false, nil
		}
		s := startReserving(t, states.domains(), actors.Hosting{})
		s.tokens.held = map[int64]*kernel.Token{7: allowed(7, "*"), 8: allowed(8)}
		operator := s.connect()
		agent, stranger := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7), s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 8)
		operator.send(set("a", "x"))
		expect(t, operator, "a 1")
		s.fill(operator)
		before := len(s.entries())

		for range 1000 {
			agent.send(terminate("a", 1), revoke("b", 7), set("c", "y"), get("d"))
			stranger.send(terminate("a", 1))
			operator.send(set("a", "z"), terminate("b", 404), spawn("c", "s"))
			expect(t, agent, "a 503", "b 503", "c 503", `d "x"`)
			expect(t, stranger, "a 403")
			expect(t, operator, "a 503", "b 404", "c 503")
		}
		if n := len(s.entries()); n != before {
			t.Fatalf("refusals left %d entries", n-before)
		}

		made := 0
		s.restoring = func(schema.Domain) { made++ }
		operator.send(terminate("t", 1), revoke("r", 7))
		expect(t, operator, "t 1", "r 1")
		operator.send(spawn("u", "s"), terminate("v", 2), set("w", "y"))
		expect(t, operator, "u 503", "v 2", "w 503")
		agent.send(terminate("a", 1))
		expect(t, agent, "a 503")
		if made != 0 {
			t.Errorf("states were rebuilt %d times, want 0: an urgent entry does not show that others have room", made)
		}
		var got []string
		for _, e := range s.entries()[before:] {
			got = append(got, e.Type)
		}
		// Calls that were refused in the same batch as an urgent call are recorded with it.
		if want := "[Syscall.Terminate Capability.Revoke Syscall.Spawn Syscall.Terminate]"; fmt.Sprint(got) != want {
			t.Errorf("journaled %v, want %s", got, want)
		}
		checkReplay(t, s, states)

		s.disk.Free()
		operator.send(get("i"))
		expect(t, operator, `i "x"`)
		operator.send(set("j", "y"))
		expect(t, operator, "j 2")
		s.fill(operator) // except for the reserve, which is complete again
		before = len(s.entries())
		for i := range 10 {
			operator.send(terminate("k", 3))
			expect(t, operator, fmt.Sprintf("k %d", 3+i))
		}
		if n := len(s.entries()); n != before+10 {
			t.Errorf("%d urgent entries, want 10", n-before)
		}
		checkReplay(t, s, states)
		checkNoGap(t, s)
		s.endCleanly()
	})
}

// TestShutdownOnAFullDisk shows that the operator can end a kernel whose disk is full, and that the journal says who did.
func TestShutdownOnAFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		states[schema.Kernel].decide = func(call *kernel.Call, _ []string) (kernel.Result, bool, error) {
			if call.Message.Type == "Syscall.Shutdown" {
				return kernel.Result{Data: []byte(`{}`), Shutdown: true}, true, nil
			}
			return kernel.Result{}, false, nil
		}
		s := startReserving(t, states.domains(), actors.Hosting{})
		c := s.connect()
		s.fill(c)
		c.send(set("a", "x"), command("s", "Syscall.Shutdown", `{}`))
		expect(t, c, "a 503", "s {}")
		<-s.kernel.Stopping()
		s.endCleanly()
		if list := s.entries(); list[len(list)-1].Type != "Syscall.Shutdown" {
			t.Errorf("the last entry is %+v", list[len(list)-1])
		}
	})
}

// TestSpentReserve uses up a reserve: urgent calls are refused like others, without a rebuild for each, until there is
// room.
func TestSpentReserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		s := startReserving(t, states.domains(), actors.Hosting{})
		c := s.connect()
		s.fill(c)
		done := 0
		for ; done < 1000; done++ {
			c.send(terminate("t", 1))
			if a := c.next(); a.Kind == schema.KindError {
				if a.Code != "503" {
					t.Errorf("got %v", a)
				}
				break
			}
		}
		if done < 10 || done == 1000 {
			t.Fatalf("the reserve was used up after %d calls", done)
		}
		synctest.Wait()
		made := 0
		s.restoring = func(schema.Domain) { made++ }
		for range 3 {
			c.send(terminate("t", 1), set("a", "x"))
			expect(t, c, "t 503", "a 503")
		}
		if made != 0 {
			t.Errorf("states were rebuilt %d times", made)
		}
		if n := strings.Count(s.log.String(), "urgent commands are refused too"); n != 1 {
			t.Errorf("the log says %d times that urgent commands are refused, want once", n)
		}
		checkReplay(t, s, states)
		s.disk.Free()
		c.send(get("g"))
		expect(t, c, `g ""`)
		c.send(terminate("t", 1), set("a", "x"))
		expect(t, c, fmt.Sprintf("t %d", done+1), "a 1")
		s.fill(c)
		c.send(terminate("t", 1))
		expect(t, c, fmt.Sprintf("t %d", done+2))
		checkReplay(t, s, states)
	})
}

// TestReserveTooSmallForOne shows that an urgent call whose entry is too long for the rest of the reserve is refused alone:
// a shorter one after it is accepted.
func TestReserveTooSmallForOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		states[schema.Process].decide = func(call *kernel.Call, _ []string) (kernel.Result, bool, error) {
			if in, ok := call.Input.(*schema.TerminateInput); ok && in.TargetPID == 2 {
				exit := schema.ProcessExit.With(&schema.ProcessExitInput{PIDs: make([]int64, 50_000)})
				return kernel.Result{Data: []byte(`{}`), Steps: []schema.Request{exit}}, true, nil
			}
			return kernel.Result{}, false, nil
		}
		s := startHosting(t, faultfs.NewDisk(), states.domains(), idempotency.New(), textLog, actors.Hosting{}, reserving(80<<10))
		c := s.connect()
		s.fill(c)
		c.send(terminate("l", 2))
		expect(t, c, "l 503")
		synctest.Wait()
		c.send(terminate("t", 1), set("a", "x"))
		expect(t, c, "t 1", "a 503")
		checkReplay(t, s, states)
	})
}

// TestLostBesideUrgent decides an urgent call on a state that was lost with a command before it: the call is lost too, and
// the next one is not.
func TestLostBesideUrgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		s := startReserving(t, states.domains(), actors.Hosting{})
		c := s.connect()
		s.fill(c)
		s.disk.Free()
		c.send(get("g"))
		expect(t, c, `g ""`)
		s.disk.Leave(0)
		for range 1000 { // commands find out that the disk is full, queries do not
			c.send(spawn("a", "s"), terminate("t", 1))
			if got := show(c.take(2)); got[0] == "a 503" {
				if got[1] != "t 503" {
					t.Errorf("got %v, want both lost", got)
				}
				break
			}
		}
		checkReplay(t, s, states)
		c.send(terminate("t", 1))
		if a := c.next(); a.Kind != schema.KindReply {
			t.Errorf("got %v", a)
		}
		checkReplay(t, s, states)
	})
}

// TestUrgentBesideOthers sends an urgent call and others to the journal together: it succeeds, and they leave nothing.
func TestUrgentBesideOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		s := startReserving(t, states.domains(), actors.Hosting{})
		operator, a, b, c := s.connect(), s.connect(), s.connect(), s.connect()
		s.fill(operator)
		before := len(s.entries())
		trying := make(chan struct{})
		s.disk.Hook = func(op faultfs.Op) {
			if op.Kind == faultfs.Allocate {
				<-trying
			}
		}
		a.send(ping("a", "1"))
		synctest.Wait() // the audit log waits for room, and the others queue up
		b.send(processes("b"))
		synctest.Wait()
		operator.send(terminate("t", 1))
		synctest.Wait()
		c.send(get("c"))
		synctest.Wait()
		close(trying)
		expect(t, a, `a ""`)
		expect(t, b, `b ""`)
		expect(t, operator, "t 1")
		expect(t, c, `c ""`)
		if list := s.entries()[before:]; len(list) != 1 || list[0].Type != "Syscall.Terminate" {
			t.Errorf("journaled: %+v", list)
		}
		checkReplay(t, s, states)
	})
}

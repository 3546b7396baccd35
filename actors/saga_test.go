package actors_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// spawning makes the process recorder take three steps for a spawn: one in its own domain, and one in each of two other domains.
// The number of the child is one more than the number of earlier spawns.
func spawning(states recorders) {
	states[schema.Process].decide = func(call *kernel.Call, applied []string) (kernel.Result, bool, error) {
		if call.Syscall.Type != "Syscall.Spawn" {
			return kernel.Result{}, false, nil
		}
		child := int64(1)
		for _, one := range applied {
			if !strings.HasPrefix(one, "prepare") {
				child++
			}
		}
		return kernel.Result{Data: []byte(`{}`), Steps: []schema.Request{
			schema.ProcessPrepare.With(&schema.ProcessPrepareInput{PID: child}),
			schema.CapabilityEndow.With(&schema.EndowInput{GrantInput: schema.GrantInput{PID: child, AllowedSyscalls: []string{"*"}}}),
			schema.IPCOpen.With(&schema.MailboxInput{PIDs: []int64{child}}),
		}}, true, nil
	}
}

// correlated returns a spawn with a correlation id.
func correlated(id, name string) string {
	m := schema.Message{Kind: schema.KindCommand, Type: "Syscall.Spawn", Data: []byte(`{"child_agent_id":"` + name + `"}`)}
	m.Meta = schema.Metadata{Present: true, ID: id, Timestamp: 1, Correlation: "flow", Causation: "earlier"}
	return strings.TrimSuffix(string(schema.AppendMessage(nil, &m)), "\n")
}

// TestSteps shows the effects of a call with steps: each step is in its domain and in the journal before the call, in
// order, made by the kernel, and caused by the call.
func TestSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		spawning(states)
		s := startWith(t, states.domains())
		agent := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
		agent.send(correlated("a", "child"))
		expect(t, agent, "a {}")

		type made struct {
			Type, Causation, Correlation string
			PID                          int64
			Conn                         string
		}
		want := []made{
			{"Process.Prepare", "a", "flow", 0, "c-1"},
			{"Capability.Endow", "a", "flow", 0, "c-1"},
			{"Ipc.Open", "a", "flow", 0, "c-1"},
			{"Syscall.Spawn", "earlier", "flow", 7, "c-1"},
		}
		var got []made
		ids := map[string]bool{}
		for _, e := range s.entries() {
			got = append(got, made{e.Type, e.call.Meta.Causation, e.call.Meta.Correlation, e.PID, e.conn})
			ids[e.ID] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("journal (-want +got):\n%s", diff)
		}
		if len(ids) != len(got) || ids[""] {
			t.Errorf("ids %v, want one of its own for each entry", ids)
		}
		applied := map[schema.Domain][]string{
			schema.Process: {"prepare-1", "child"}, schema.Capability: {"grant-1"}, schema.Ipc: {"open-1"},
		}
		if diff := cmp.Diff(applied, states.applied()); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		checkReplay(t, s, states)
		s.endCleanly()
	})
}

// TestStepsAreOnDisk shows that the answer to a call with steps waits until all of them are on disk, which takes at most
// one more fsync.
func TestStepsAreOnDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		spawning(states)
		s := startWith(t, states.domains())
		gate := s.holdSyncs()
		c, d := s.connect(), s.connect()
		c.send(spawn("a", "child"))
		expectNothing(t, c)
		d.send(query("b", "Process.Get", `{"pid":1}`))
		expectNothing(t, d)
		gate.open()
		expect(t, c, "a {}")
		expect(t, d, `b "prepare-1 child"`)
		if n := gate.begun.Load(); n > 2 {
			t.Errorf("%d fsyncs for one call with its steps", n)
		}
	})
}

// TestCallsBehindSteps sends calls in one turn with one that has steps: calls of the same domain, from any connection, wait
// for the whole call and then run in order.
func TestCallsBehindSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		spawning(states)
		held := make(chan struct{})
		states[schema.Memory].apply = func(*kernel.Call) { <-held }
		s := startWith(t, states.domains())
		a, b, c, d := s.connect(), s.connect(), s.connect(), s.connect()
		synctest.Wait() // otherwise their order is that in which the connections were opened
		d.send(set("d", "x"))
		synctest.Wait()
		a.send(spawn("a", "one"))
		synctest.Wait()
		b.send(query("b", "Process.Get", `{"pid":1}`), command("b2", "Syscall.Terminate", `{"target_pid":1}`))
		synctest.Wait()
		c.send(processes("c"))
		synctest.Wait()
		close(held)
		expect(t, a, "a {}")
		expect(t, b, `b "prepare-1 one"`, "b2 3")
		expect(t, c, `c "prepare-1 one Syscall.Terminate"`)
		checkReplay(t, s, states)
	})
}

// TestPipelinedSteps sends several calls with steps on one connection. The journal has all entries in the order in which
// they were applied, so that the state can be rebuilt.
func TestPipelinedSteps(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		frames []string
	}{
		{"spawns alone", []string{spawn("a", "one"), spawn("b", "two"), spawn("c", "three")}},
		{"behind a command", []string{command("a", "Syscall.Terminate", `{"target_pid":9}`), spawn("b", "one"), processes("c")}},
		{"around a command", []string{spawn("a", "one"), command("b", "Syscall.Terminate", `{"target_pid":1}`), spawn("c", "two")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				states := newRecorders()
				spawning(states)
				s := startWith(t, states.domains())
				c := s.connect()
				c.send(test.frames...)
				synctest.Wait()
				checkCauses(t, []string{"a", "b", "c"}, c.pending())
				checkReplay(t, s, states)
			})
		})
	}
}

// TestRecovery shows that the steps of recovery are made before any client is served, and journaled as the kernel's.
func TestRecovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		s := startWith(t, states.domains())
		s.kernel.Recover([]schema.Request{
			schema.IPCClose.With(&schema.MailboxInput{PIDs: []int64{3}}),
			schema.CapabilityStrip.With(&schema.StripInput{PIDs: []int64{3}}),
		})
		c := s.connect()
		c.send(ping("a", "1"))
		expect(t, c, `a ""`)
		var got []string
		for _, e := range s.entries() {
			got = append(got, e.Type+" "+e.conn)
		}
		if diff := cmp.Diff([]string{"Ipc.Close recovery", "Capability.Strip recovery", "Syscall.Ping c-1"}, got); diff != "" {
			t.Errorf("journal (-want +got):\n%s", diff)
		}
		checkReplay(t, s, states)
	})
}

// TestOwnStepsTakeTurns makes a call with many steps in its own domain, as when many processes end: between two of them the
// actor handles other messages, for example that a waiting client has disconnected.
func TestOwnStepsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		var waiter *client
		steps, hungUp := 0, 0
		states[schema.Process].decide = func(call *kernel.Call, _ []string) (kernel.Result, bool, error) {
			switch call.Syscall {
			case schema.ProcessGet.Syscall:
				return kernel.Result{Wait: time.Hour}, true, nil
			case schema.SyscallTerminate.Syscall:
				step := schema.ProcessExit.With(&schema.ProcessExitInput{PIDs: []int64{1}})
				return kernel.Result{Data: []byte(`{}`), Steps: []schema.Request{step, step, step}}, true, nil
			}
			return kernel.Result{}, false, nil
		}
		states[schema.Process].apply = func(call *kernel.Call) {
			if call.Syscall != schema.ProcessExit.Syscall {
				return
			}
			if steps++; steps == 1 {
				_ = waiter.link.Close()
			}
			time.Sleep(time.Second) // of the fake clock: until all others wait
			select {
			case <-waiter.done:
				hungUp++
			default:
			}
		}
		s := startWith(t, states.domains())
		waiter = s.connect()
		waiter.send(query("a", "Process.Get", `{"pid":1}`))
		synctest.Wait()
		c := s.connect()
		c.send(command("b", "Syscall.Terminate", `{"target_pid":1}`))
		if got := c.next(); string(got.Data) != "{}" {
			t.Errorf("answered %s", got.Data)
		}
		if steps != 3 || hungUp == 0 {
			t.Errorf("%d steps, %d of them after the client had disconnected; want 3, and at least the last of them", steps, hungUp)
		}
		checkReplay(t, s, states)
	})
}

package actors_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/self"
	"github.com/promptware-os/pwos/schema"
)

// on returns a Memory.Set on behalf of another process, or at a tick, as more says.
func on(id, more string) string {
	return command(id, "Memory.Set", `{"key":"x","value":1,`+more+`}`)
}

// TestActingAs shows the process and tick of a call: in its domain and in its entry, and what is refused.
func TestActingAs(t *testing.T) {
	t.Parallel()
	const start = 5
	tests := []struct {
		name   string
		caller int64
		frame  string
		want   string // the answer
		as     string // "pid tick" of the entry
	}{
		{"the operator as itself", 0, set("a", "x"), "a 1", "0 5"},
		{"the operator as a process", 0, on("a", `"pid":7`), "a 1", "7 5"},
		{"the operator at a tick to come", 0, on("a", `"tick":12`), "a 1", "0 12"},
		{"the operator at a tick gone by", 0, on("a", `"tick":3`), "a 1", "0 5"},
		{"the operator as a process, at a tick", 0, on("a", `"pid":7,"tick":12`), "a 1", "7 12"},
		{"the operator as a process without a token", 0, on("a", `"pid":9`), "a 403", "9 5"},
		{"the operator as a process whose token has run out by then", 0, on("a", `"pid":8,"tick":7`), "a 403", "8 7"},
		{"an agent", 7, set("a", "x"), "a 1", "7 5"},
		{"an agent that names itself", 7, on("a", `"pid":7`), "a 1", "7 5"},
		{"an agent as another", 7, on("a", `"pid":8`), "a 403", "7 5"},
		{"an agent as the operator", 7, on("a", `"pid":0`), "a 403", "7 5"},
		{"an agent at the present tick", 7, on("a", `"tick":5`), "a 1", "7 5"},
		{"an agent at a tick gone by", 7, on("a", `"tick":3`), "a 1", "7 5"},
		{"an agent at a tick to come", 7, on("a", `"tick":6`), "a 422", "7 5"},
		{"an agent with a token that has not run out", 8, set("a", "x"), "a 1", "8 5"},
		{"an agent without a token", 9, set("a", "x"), "a 403", "9 5"},
		{"an agent without a token that pings", 9, ping("a", "1"), `a ""`, "9 5"},
		{"an agent that shuts down", 7, command("a", "Syscall.Shutdown", "{}"), "a 403", "7 5"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			switch test.name {
			case "an agent as another", "an agent as the operator", "an agent at a tick to come":
			}
			synctest.Test(t, func(t *testing.T) {
				states := newRecorders()
				told := "nothing"
				note := func(call *kernel.Call, _ []string) (kernel.Result, bool, error) {
					told = fmt.Sprint(call.PID, " ", call.Tick)
					if call.Token != nil && call.Token.PID() != call.PID {
						t.Errorf("pid %d has the token of %d", call.PID, call.Token.PID())
					}
					return kernel.Result{}, false, nil
				}
				states[schema.Memory].decide, states[schema.Kernel].decide = note, note
				s := startWith(t, states.domains())
				s.kernel.Reach(start)
				eight := allowed(8, "Memory.*")
				eight.Granted.ExpiresAtTick = new(int64(6))
				s.tokens.held = map[int64]*kernel.Token{0: allowed(0, "*"), 7: allowed(7, "*"), 8: eight}
				c := s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), test.caller)
				c.send(test.frame)
				synctest.Wait()
				got := c.pending()
				if diff := cmp.Diff([]string{test.want}, show(got)); diff != "" {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
				e := s.entries()[0]
				if as := fmt.Sprint(e.PID, " ", e.Tick); as != test.as || e.origin != "https://test.local/" {
					t.Errorf("entry of pid and tick %q, origin %q, want %q and the kernel's origin", as, e.origin, test.as)
				}
				if got[0].Kind == schema.KindReply && told != test.as {
					t.Errorf("the domain got pid and tick %q, want %q", told, test.as)
				}
				if got[0].Kind == schema.KindError && (told != "nothing" || len(states.applied()) > 0) {
					t.Errorf("refused, but the domain got %q", told)
				}
			})
		})
	}
}

// TestOperatorMovesClock shows that a tick that the operator names becomes the kernel's, for all processes, and that the
// clock never moves back.
func TestOperatorMovesClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := newRecorders()
		domains := states.domains()
		domains[schema.Kernel] = self.New(nil)
		s := startWith(t, domains)
		operator, agent := s.connect(), s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7)
		clock := func(want int) {
			t.Helper()
			agent.send(query("t", "Clock.Get", "{}"))
			expect(t, agent, fmt.Sprintf(`t {"tick":%d}`, want))
		}
		clock(0)
		operator.send(on("a", `"tick":10`))
		expect(t, operator, "a 1")
		clock(10)
		operator.send(on("b", `"tick":4`))
		expect(t, operator, "b 2")
		clock(10)
		operator.send(command("c", "Clock.Advance", `{"ticks":5}`))
		expect(t, operator, `c {"tick":15}`)
		clock(15)
		agent.send(on("d", `"tick":16`))
		expect(t, agent, "d 422")
		clock(15)
		if e := s.entries()[5]; e.ID != "c" || e.Tick != 15 {
			t.Errorf("entry %v, want the tick that it moved the clock to: the next start begins there", e)
		}
	})
}

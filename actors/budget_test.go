package actors_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/journal/faultfs"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/budget"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/schema"
)

// oneAgent is a process table with one process.
type oneAgent struct{}

func (oneAgent) Process(pid int64) *schema.Descriptor {
	if pid != 7 {
		return nil
	}
	return &schema.Descriptor{PID: 7, AgentID: "a"}
}

// TestBudgetOfLostCalls: calls that a failed write loses, and those that were decided based on them, cost nothing, and no
// part of the budget stays reserved for them.
func TestBudgetOfLostCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states, ledger := newRecorders(), budget.New()
		s := startHosting(t, faultfs.NewDisk(), states.domains(), idempotency.New(), textLog, actors.Hosting{}, ledger)
		ledger.Record(&kernel.Call{
			Request: kernel.Request{Syscall: schema.CapabilityEndow.Syscall, Input: &schema.EndowInput{
				GrantInput: schema.GrantInput{PID: 7, Budget: &schema.BudgetGrant{Calls: new(int64(1000))}},
			}},
		})
		ledger.Keep()
		spent := func(want string) {
			t.Helper()
			synctest.Wait()
			call := &kernel.Call{Request: kernel.Request{Syscall: schema.BudgetShow.Row(), Input: &schema.BudgetShowInput{}}}
			result, err := budget.NewDomain(ledger, oneAgent{}).Decide(call)
			if err != nil {
				t.Fatal(err)
			}
			out, err := schema.BudgetShow.Decode(result.Data)
			if err != nil {
				t.Fatal(err)
			}
			if b := out.Budgets[0].Calls; string(b.Spent) != want || b.Reserved != "0" {
				t.Errorf("spent %s, reserved %s; want %s and 0", b.Spent, b.Reserved, want)
			}
		}
		var clients []*client
		for range 4 {
			clients = append(clients, s.serveAs(newLink(schema.OsMessage, schema.MaxLine, unbounded), 7))
		}
		clients[0].send(set("a", "x"))
		expect(t, clients[0], "a 1")
		spent("1")
		s.files.Arm(faultfs.Fault{N: 1, Err: syscall.EIO})
		for i, c := range clients {
			for n := range 20 {
				if id := fmt.Sprintf("c%d-%d", i, n); n%2 == 0 {
					c.send(set(id, "y"))
				} else {
					c.send(grant(id, 7))
				}
			}
		}
		synctest.Wait()
		done := 0
		for _, c := range clients {
			done += strings.Count(string(c.link.out.drain()), `"kind":"reply"`)
		}
		spent(fmt.Sprint(1 + done))
		clients[0].send(set("b", "z"))
		synctest.Wait()
		spent(fmt.Sprint(2 + done))
	})
}

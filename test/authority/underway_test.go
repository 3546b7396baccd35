package authority_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/test/authority/model"
)

// TestKeyUnderWay makes other calls with the key of a spawn that is in flight: one that is denied, and one with another
// body. Neither may take the key: after the spawn, a repetition gets the spawn's outcome, and runs nothing.
func TestKeyUnderWay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		call  request
		code  int
		after bool // made after the spawn instead of while it is in flight
	}{
		{"denied", request{typ: "Memory.Set", data: `{"key":"k","value":1}`}, 403, false},
		{"another body", request{typ: "Syscall.CommitDelta", data: `{"changes":{"n":1}}`}, 409, false},
		{"a tick to come", request{typ: "Syscall.CommitDelta", data: `{"changes":{"n":1},"tick":9}`}, 422, false},
		{"denied, after it", request{typ: "Memory.Set", data: `{"key":"k","value":1}`}, 403, true},
		{"another body, after it", request{typ: "Syscall.CommitDelta", data: `{"changes":{"n":1}}`}, 409, true},
		{"a tick to come, after it", request{typ: "Syscall.CommitDelta", data: `{"changes":{"n":1},"tick":9}`}, 422, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var armed atomic.Bool
				endow := make(chan struct{})
				s, done := start(t, &config{mailbox: 50, breach: in(schema.Capability, func(d kernel.Domain) kernel.Domain {
					return &mutant{Domain: d, decide: func(call *kernel.Call) (kernel.Result, error) {
						if armed.Load() {
							<-endow
						}
						return d.Decide(call)
					}}
				})})
				pid := s.connect(model.Operator).spawn(t, `{"allowed_syscalls":["Syscall.*"]}`)
				agent, beside, holder := s.connect(pid), s.connect(pid), s.connect(model.Operator)
				spawn := request{typ: "Syscall.Spawn", data: `{"child_agent_id":"b"}`, key: "k"}
				var asking sync.WaitGroup
				if !test.after { // both are in one turn, and the second is decided between the steps of the first
					armed.Store(true)
					asking.Go(func() {
						if _, err := holder.ask(request{typ: "Capability.Revoke", data: `{"pid":99}`}); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				first := make(chan answer, 1)
				asking.Go(func() {
					a, err := agent.ask(spawn)
					if err != nil {
						t.Error(err)
					}
					first <- a
				})
				synctest.Wait()
				test.call.key = spawn.key
				asking.Go(func() {
					if a, err := beside.ask(test.call); err != nil || a.code != test.code {
						t.Errorf("%s: %s, %v, want error %d", test.call, a, err, test.code)
					}
				})
				synctest.Wait()
				close(endow)
				asking.Wait()
				one := <-first
				if again, err := agent.ask(spawn); err != nil || one.code != 0 || string(again.data) != string(one.data) {
					t.Errorf("the first time %s, the second %s, %v", one, again, err)
				}
				done()
				ranOnce(t, s, 1)
			})
		})
	}
}

package authority_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/test/authority/model"
)

// TestRevocationIsSeenFirst delays the registry after it has revoked a token, before other domains see that. The
// revocation must not be acknowledged before they do: a later call would succeed.
func TestRevocationIsSeenFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var armed atomic.Bool
		decide, publish := make(chan struct{}), make(chan struct{})
		var decided atomic.Bool // the revocation was decided
		s, _ := start(t, &config{mailbox: 50, breach: in(schema.Capability, func(d kernel.Domain) kernel.Domain {
			return &mutant{
				Domain: d,
				decide: func(call *kernel.Call) (kernel.Result, error) {
					if armed.Load() && call.Syscall.Type == "Capability.Grant" {
						<-decide
					}
					if call.Syscall.Type == "Capability.Revoke" {
						decided.Store(true)
					}
					return d.Decide(call)
				},
				shown: func() {
					if decided.Load() {
						<-publish
					}
				},
			}
		})})
		op, other := s.connect(model.Operator), s.connect(model.Operator)
		const all = `{"allowed_syscalls":["*"]}`
		victim, unrelated := op.spawn(t, all), op.spawn(t, all)
		agent := s.connect(victim)
		armed.Store(true)

		// The grant blocks the registry's actor, and the revocation is queued behind it.
		granted, revoked := make(chan answer, 1), make(chan answer, 1)
		send := func(c *client, to chan<- answer, r request) {
			go func() {
				a, err := c.ask(r)
				if err != nil {
					t.Error(err)
				}
				to <- a
			}()
			synctest.Wait()
		}
		send(other, granted, request{typ: "Capability.Grant", data: fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["*"]}`, unrelated)})
		send(op, revoked, request{typ: "Capability.Revoke", data: fmt.Sprintf(`{"pid":%d}`, victim)})
		close(decide)
		synctest.Wait()
		if !decided.Load() {
			t.Error("the revocation did not run")
		}
		if len(revoked) > 0 {
			a, err := agent.ask(request{typ: "Memory.Set", data: `{"key":"k","value":1}`})
			t.Errorf("the revocation was acknowledged before it holds; Memory.Set after that: %s, %v", a, err)
		}
		close(publish)
		<-granted
		<-revoked
		if a, err := agent.ask(request{typ: "Memory.Set", data: `{"key":"k","value":1}`}); err != nil || a.code != 403 {
			t.Errorf("after the revocation: %s, %v", a, err)
		}
	})
}

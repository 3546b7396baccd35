package kernel_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestListFollowed has an agent without a token that follows the list of what it may call: it is notified immediately when
// it is granted something, when that is revoked, and when its end has ended the subscription.
func TestListFollowed(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			p := assemble(t)
			operator := p.connect(0)
			pid := operator.spawn(0, `{"allowed_syscalls":["Memory.Get"]}`)
			agent := p.connect(pid)
			listed := func(want bool) {
				t.Helper()
				var list struct{ Syscalls []string }
				a := agent.event(d, "Syscall.Listed")
				testkit.Must(t, json.Unmarshal(a.Data, &list))
				if got := slices.Contains(list.Syscalls, "Memory.Set"); got != want {
					t.Errorf("the pushed list is %s, want Memory.Set in it: %t", a.Data, want)
				}
			}
			if a := agent.speak(d, "Syscall.List", `{"follow":true}`, ""); a.Kind != "reply" {
				t.Fatalf("list: %s", a.Data)
			}
			listed(false)
			operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Memory.Set"],"mode":"add"}`, pid), nil)
			listed(true)
			operator.call("Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, pid), nil)
			listed(false)
			operator.call("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
			agent.event(d, "Syscall.Unsubscribed")
		})
	}
}

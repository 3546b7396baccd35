package daemon_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/access"
)

// A key with options is an agent with exactly that token: the same process at each login and after a restart.
func TestAgentsKey(t *testing.T) {
	t.Parallel()
	operator, scout, plain := newKey(t), newKey(t), newKey(t)
	h := startKeyed(
		t,
		operator.Key().String(),
		`agent="scout",allow="Memory.*,SYS_ALLOC,Capability.Get,Process.Get",quota="gpu=1.5",origin="https://scout.example/" `+scout.Key().String(),
		`allow="Memory.Get" `+plain.Key().String(),
	)
	first := h.login(t, operator, h.KernelSocket)
	first.want("command", "Memory.Set", `{"key":"a","value":"operator's"}`, "true")
	for range 2 {
		for _, path := range []string{h.KernelSocket, h.EventsSocket} {
			p := h.login(t, scout, path)
			p.want("query", "Capability.Get", `{}`, `{"pid":1,"granted_by":0,"allowed_syscalls":["Capability.Get","Memory.*","Process.Get","SYS_ALLOC"],"resource_quotas":{"gpu":1.5}`)
			p.want("query", "Process.Get", `{"pid":1}`, `"agent_id":"scout"`)
			p.want("query", "Process.Get", `{"pid":1}`, `"origin":"https://scout.example/"`)
			p.wantDenied("command", "Syscall.Alloc", `{"resource_id":"gpu","amount":2}`, 429)
			p.wantDenied("command", "Syscall.Spawn", `{"child_agent_id":"x"}`, 403)
			p.wantDenied("command", "Syscall.Shutdown", `{}`, 403)
			p.wantDenied("query", "Memory.Get", `{"key":"a"}`, 404) // of another origin
			p.wantDenied("query", "Memory.Get", `{"key":"a","pid":0}`, 403)
		}
		p := h.login(t, plain, h.KernelSocket)
		p.want("query", "Memory.Get", `{"key":"a"}`, "operator's") // of the operator's origin
		p.wantDenied("command", "Memory.Set", `{"key":"a","value":1}`, 403)
		h.login(t, operator, h.KernelSocket).want("query", "Process.Get", `{"pid":2}`, `"agent_id":"key:SHA256:`)
		h.restart(t)
	}
}

// An agent's line is applied at its next login. What the operator granted in between is valid until the line changes or the
// kernel restarts, what the operator revoked until the line changes. An ended process is not started again.
func TestAgentsLineChanges(t *testing.T) {
	t.Parallel()
	operator, scout := newKey(t), newKey(t)
	line := func(options string) string { return options + " " + scout.Key().String() }
	h := startKeyed(t, operator.Key().String(), line(`allow="Memory.*"`))
	root := h.login(t, operator, h.KernelSocket)
	agent := func() *peer { return h.login(t, scout, h.KernelSocket) }
	agent().want("command", "Memory.Set", `{"key":"a","value":1}`, "true")

	root.want("command", "Capability.Grant", `{"pid":1,"allowed_syscalls":["Memory.*","SYS_ALLOC"],"resource_quotas":{"gpu":1}}`, "SYS_ALLOC")
	agent().want("command", "Syscall.Alloc", `{"resource_id":"gpu","amount":1}`, "gpu")
	h.restart(t)
	agent().wantDenied("command", "Syscall.Alloc", `{"resource_id":"gpu","amount":1}`, 403)
	root = h.login(t, operator, h.KernelSocket)
	root.want("command", "Capability.Revoke", `{"pid":1}`, "true")
	agent().wantDenied("command", "Memory.Set", `{"key":"a","value":1}`, 403)
	h.restart(t)
	agent().wantDenied("command", "Memory.Set", `{"key":"a","value":1}`, 403)

	h.authorize(t, operator.Key().String(), line(`allow="Memory.Get"`))
	p := agent()
	p.want("query", "Memory.Get", `{"key":"a"}`, "1")
	p.wantDenied("command", "Memory.Set", `{"key":"a","value":1}`, 403)

	h.authorize(t, operator.Key().String(), line(`allow="Memory.*"`))
	root = h.login(t, operator, h.KernelSocket)
	agent().want("command", "Memory.Set", `{"key":"a","value":2}`, "true")
	root.want("command", "Syscall.Terminate", `{"target_pid":1}`, "1")
	agent().want("command", "Memory.Set", `{"key":"a","value":3}`, "true")
	root.want("query", "Process.Get", `{"pid":2}`, `"state":"READY"`)

	// Its key became another agent's, which has nothing of the previous one.
	h.authorize(t, operator.Key().String(), line(`agent="other",allow="Memory.*"`))
	agent().want("command", "Memory.Set", `{"key":"a","value":4}`, "true")
	root.want("query", "Process.Get", `{"pid":2}`, `"state":"TERMINATED"`)
	root.want("query", "Process.Get", `{"pid":3}`, `"agent_id":"other"`)

	// And then the operator's, and then no one's.
	h.authorize(t, operator.Key().String(), line(""))
	agent().want("command", "Clock.Advance", `{"ticks":1}`, "tick")
	h.authorize(t, operator.Key().String())
	agent().wantRefused("not in the daemon's authorized_keys")
}

// A line that grants something that does not exist refuses its key; the holder and the log get the reason.
func TestGrantOfNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ options, why string }{
		"syscall":  {`allow="Memory.Get,No.Such"`, "No.Such"},
		"resource": {`allow="Memory.Get",quota="fuel=1"`, "fuel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := newKey(t)
			h := startKeyed(t, c.options+" "+key.Key().String())
			h.login(t, key, h.KernelSocket).wantRefused(c.why)
		})
	}
}

// The process of a key cannot be forged: an agent that spawns a similar process gains nothing, not even after a restart.
func TestAgentsProcessIsNotForged(t *testing.T) {
	t.Parallel()
	operator, forger, victim := newKey(t), newKey(t), newKey(t)
	h := startKeyed(t, operator.Key().String(), `allow="Syscall.Spawn,Memory.*" `+forger.Key().String(), `allow="Memory.Get" `+victim.Key().String())
	intent := "key:" + victim.Key().Fingerprint()
	name := strings.ReplaceAll(intent, "/", "_")
	f := h.login(t, forger, h.KernelSocket)
	f.wantDenied("command", "Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":%q,"intent":%q}`, name, intent), 422) // only the kernel gives such a name
	f.want("command", "Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"mine","intent":%q}`, intent), `"child_pid":2`)
	h.restart(t)
	h.login(t, victim, h.KernelSocket).wantDenied("command", "Memory.Set", `{"key":"a","value":1}`, 403)
	root := h.login(t, operator, h.KernelSocket)
	root.want("query", "Process.Get", `{"pid":2}`, `"parent_pid":1`)
	root.want("query", "Process.Get", `{"pid":3}`, `"parent_pid":0`)
	root.want("query", "Process.Get", `{"pid":3}`, name)
}

// Concurrent logins of one key result in one process.
func TestAgentsLoginsAtOnce(t *testing.T) {
	t.Parallel()
	operator, scout := newKey(t), newKey(t)
	h := startKeyed(t, operator.Key().String(), `allow="Memory.*" `+scout.Key().String())
	root := h.login(t, operator, h.KernelSocket) // which pins the kernel
	var peers []*peer
	for range 16 {
		peers = append(peers, connect(t, h.KernelSocket))
	}
	var logins sync.WaitGroup
	for _, p := range peers {
		logins.Go(func() {
			if err := access.ClientPrologue(t.Context(), p.conn, h.sign(t, scout, h.KernelSocket)); err != nil {
				t.Error(err)
			}
		})
	}
	logins.Wait()
	for _, p := range peers {
		p.want("query", "Memory.Get", `{"key":"proc/self/status"}`, `"pid":1`)
	}
	if m := root.ask("query", "Process.List", `{}`); strings.Count(string(m.Data), `"agent_id"`) != 1 {
		t.Errorf("there are %s", m.Data)
	}
}

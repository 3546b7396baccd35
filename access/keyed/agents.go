package keyed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// agents are the processes of agents' keys: each key has one, spawned at its first login and used
// again at each later one, as long as it lives.
type agents struct {
	kernel    Doer
	processes kernel.Processes
	tokens    kernel.Tokens
	pools     []string // that exist
	origin    string   // of keys whose line has none
	intent    string   // prefix of the intent of their processes, before the fingerprint
	file      string   // of the lines

	mu    sync.Mutex
	known map[string]keyAgent // by fingerprint
}

// keyAgent is the process of a key, and what its line granted at the latest login; nil: that login
// was before this start.
type keyAgent struct {
	pid   int64
	grant *access.AgentGrant
}

// newAgents finds the processes of keys in the state. It must run before the first call to a
// domain.
func newAgents(o *Options, intent, file string) *agents {
	a := &agents{
		kernel: o.Kernel, processes: o.Processes, tokens: o.Tokens, pools: o.Pools, origin: o.Origin, intent: intent, file: file,
		known: make(map[string]keyAgent),
	}
	o.Living(func(p *schema.Descriptor) {
		if fingerprint, ok := strings.CutPrefix(p.Intent, intent); ok && p.ParentPID == kernel.Operator {
			a.known[fingerprint] = keyAgent{pid: p.PID}
		}
	})
	return a
}

// noGrant is the error of a line whose grant is invalid. It is shown to the key's holder.
func (a *agents) noGrant(fingerprint string, why *fault.Fault) *fault.Fault {
	return fault.AuthGrant.New("the line of the key %s in %s is not a valid grant: %s", fingerprint, a.file, why.Text()).With("key", fingerprint)
}

// of returns the process of a key, with the token that its line grants. The error is a fault.AuthGrant, or the kernel's.
func (a *agents) of(key *access.AuthorizedKey) (pid int64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fingerprint := key.Key.Fingerprint()
	// Check before the existing process is changed.
	if why := a.check(key); why != nil {
		return 0, a.noGrant(fingerprint, why)
	}
	agent, ok := a.known[fingerprint]
	if ok && !a.alive(agent.pid) {
		ok = false
	}
	if ok && !a.same(agent.pid, key) {
		// A process cannot change its name or origin, and what it holds must not pass to another
		// agent.
		reason := "its key is another agent's now"
		if _, err := a.kernel.Do(context.Background(), kernel.Own{
			Request: schema.SyscallTerminate.With(&schema.TerminateInput{TargetPID: agent.pid, Reason: &reason}),
		}); err != nil {
			return 0, fmt.Errorf("end agent of a key: %w", err)
		}
		ok = false
	}
	if ok {
		err = a.renew(agent, key)
	} else {
		agent.pid, err = a.spawn(key)
	}
	if why, ok := errors.AsType[*fault.Fault](err); ok && why.Kind == fault.InvalidInput {
		return 0, a.noGrant(fingerprint, why)
	}
	if err != nil {
		return 0, fmt.Errorf("make agent of a key: %w", err)
	}
	a.known[fingerprint] = keyAgent{agent.pid, key.Agent}
	return agent.pid, nil
}

func (a *agents) alive(pid int64) bool {
	p := a.processes.Process(pid)
	return p != nil && p.State != "TERMINATED"
}

// same reports whether the process is still the agent that the key's line names.
func (a *agents) same(pid int64, key *access.AuthorizedKey) bool {
	p := a.processes.Process(pid)
	named := p.AgentID == agentID(key) || key.Agent.Name == "" && p.AgentID == oldAgentID(key)
	return named && p.Origin == a.originOf(key)
}

// agentID is the name in the line, else a name made from the key.
func agentID(key *access.AuthorizedKey) string {
	if key.Agent.Name != "" {
		return key.Agent.Name
	}
	return strings.ReplaceAll(oldAgentID(key), "/", "_") // a slash separates an agent's name from its child's
}

// oldAgentID is the name that older kernels gave the agent of a key whose line has no name.
func oldAgentID(key *access.AuthorizedKey) string { return process.KeyIntent + key.Key.Fingerprint() }

// originOf is the origin of the line in its normal form (ABI 6.2), else that of the kernel. check
// has validated it.
func (a *agents) originOf(key *access.AuthorizedKey) string {
	if origin, err := uri.Origin(key.Agent.Origin, a.origin); err == nil {
		return origin
	}
	return a.origin
}

// check returns what is wrong with the grant of a key's line, or nil.
func (a *agents) check(key *access.AuthorizedKey) *fault.Fault {
	if key.Agent == nil {
		return nil
	}
	if _, err := uri.Origin(key.Agent.Origin, a.origin); err != nil {
		return kernel.Invalid("origin", "is none: %v", err)
	}
	_, why := kernel.NewGrant(&schema.GrantInput{PID: 1, AllowedSyscalls: allowed(key), ResourceQuotas: key.Agent.Quotas}, kernel.Operator, a.pools, schema.Registrable)
	return why
}

// spawn makes the process of a key, as the operator.
func (a *agents) spawn(key *access.AuthorizedKey) (int64, error) {
	intent := a.intent + key.Key.Fingerprint()
	spawn := schema.SyscallSpawn.With(&schema.SpawnInput{
		ChildAgentID: agentID(key),
		Intent:       &intent,
		Capabilities: &schema.SpawnCapability{AllowedSyscalls: allowed(key), ResourceQuotas: key.Agent.Quotas},
	})
	answer, err := a.kernel.Do(context.Background(), kernel.Own{Caller: kernel.Caller{Origin: a.originOf(key)}, Request: spawn})
	if err != nil {
		return 0, err
	}
	out, err := schema.SyscallSpawn.Decode(answer.Data)
	if err != nil {
		return 0, err
	}
	return out.ChildPID, nil
}

// allowed is what a line allows; a line without allow has an empty list.
func allowed(key *access.AuthorizedKey) []string {
	return append([]string{}, key.Agent.Allow...)
}

// renew grants the process of a key what its line says, if the line has changed since the previous
// login. Otherwise a later grant or revocation by the operator stays in force. The token shows
// whether a line changed while no daemon ran; a revoked token is not restored for that reason.
func (a *agents) renew(agent keyAgent, key *access.AuthorizedKey) error {
	grant := &schema.GrantInput{PID: agent.pid, AllowedSyscalls: allowed(key), ResourceQuotas: key.Agent.Quotas}
	if agent.grant != nil {
		if reflect.DeepEqual(agent.grant, key.Agent) {
			return nil
		}
	} else {
		want, failure := kernel.NewGrant(grant, kernel.Operator, a.pools, schema.Registrable)
		if failure != nil {
			return failure
		}
		held := a.tokens.Token(agent.pid)
		if held == nil || equal(&held.Granted.TokenGrant, want) {
			return nil
		}
	}
	_, err := a.kernel.Do(context.Background(), kernel.Own{Request: schema.CapabilityGrant.With(grant)})
	return err
}

// equal reports whether two grants to a process say the same.
func equal(a, b *schema.TokenGrant) bool {
	return slices.Equal(a.AllowedSyscalls, b.AllowedSyscalls) && maps.Equal(a.ResourceQuotas, b.ResourceQuotas) &&
		a.ExpiresAtTick == nil && b.ExpiresAtTick == nil
}

// Members maps the other kernels of a cluster to processes: one for each kernel, with the grant of
// its line in the members file. That process makes the calls of its kernel.
type Members struct{ agents *agents }

// NewMembers finds the processes of kernels, before the first call to the kernel. It uses the
// options that concern processes.
func NewMembers(o Options) *Members {
	return &Members{newAgents(&o, process.KernelIntent, "the members file")}
}

// Process returns the process of a kernel. It spawns one at the first call, and grants it what the
// line says now.
func (m *Members) Process(line *access.AuthorizedKey) (pid int64, err error) {
	if line.Agent == nil || len(line.Agent.Allow) == 0 {
		return 0, fault.CapabilityDenied.New("the kernel %s may do nothing here: its line in the members file has no option allow", line.Kernel)
	}
	named, grant := *line, *line.Agent
	grant.Name = "kernel-" + line.Kernel
	named.Agent = &grant
	return m.agents.of(&named)
}

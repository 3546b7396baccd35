package process_test

import (
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const home = "https://home.local/"

var pools = []string{"ram", "gpu"}

// shell drives a domain as the kernel's shell does, and keeps a journal.
type shell struct {
	t      domaintest.TB
	domain *process.Domain
	tokens map[int64]*kernel.Token
	tick   int64

	journal domaintest.Journal
	steps   []schema.Request // of the last call
	effect  *kernel.Work     // of the last call
}

func newShell(t domaintest.TB) *shell {
	return &shell{t: t, domain: process.New(pools), tokens: map[int64]*kernel.Token{}}
}

// run decodes, decides, and applies a call, its steps first.
func (s *shell) run(pid int64, typ, data string) (string, *fault.Fault) {
	s.t.Helper()
	call := s.request(pid, typ, data)
	result, err := domaintest.Decide(s.t, s.domain, call)
	if err != nil {
		return "", domaintest.Shown(s.t, err)
	}
	s.effect = result.Effect
	s.steps = result.Steps
	for _, step := range result.Steps {
		raw, err := schema.Marshal(step.Input)
		testkit.Must(s.t, err)
		own := s.request(kernel.Operator, step.Row.Type, string(raw))
		if !own.Syscall.Internal {
			s.t.Fatalf("step %s is no internal row", step.Row.Type)
		}
		if own.Syscall.Domain != schema.Process {
			s.endow(own.Input)
			continue
		}
		done, err := s.domain.Decide(own)
		testkit.Must(s.t, err)
		own.Input = step.Input // a live step is not decoded again
		s.journal.Apply(s.domain, own, done.Data)
	}
	s.journal.Apply(s.domain, call, result.Data)
	s.domain.Publish()
	return string(result.Data), nil
}

func (s *shell) request(pid int64, typ, data string) *kernel.Call {
	s.t.Helper()
	call := domaintest.Request(s.t, typ, data)
	call.PID, call.Token, call.Origin, call.Tick = pid, s.tokens[pid], home, s.tick
	return call
}

// check compares the state with two others: a fresh domain that replays the journal with another configuration, and
// one that is restored from a snapshot.
func (s *shell) check() {
	s.t.Helper()
	s.journal.Check(s.t, s.domain, process.New(nil), process.New(pools))
}

func restore(t domaintest.TB, from *process.Domain) *process.Domain {
	t.Helper()
	to := process.New(pools)
	domaintest.Restore(t, from, to)
	to.Publish()
	return to
}

// endow handles the steps of the capability domain.
func (s *shell) endow(in any) {
	switch in := in.(type) {
	case *schema.EndowInput:
		grant, err := kernel.NewGrant(&in.GrantInput, *in.GrantedBy, []string{"gpu", "ram"})
		if err != nil {
			s.t.Fatalf("step Capability.Endow is refused: %v", err)
		}
		s.tokens[in.PID] = &kernel.Token{Granted: schema.Token{PID: in.PID, TokenGrant: *grant}, Granter: s.tokens[*in.GrantedBy]}
	case *schema.StripInput:
		for _, pid := range in.PIDs {
			delete(s.tokens, pid)
		}
	}
}

// get describes a process.
func (s *shell) get(pid int64) *schema.Descriptor {
	s.t.Helper()
	p := s.domain.Processes().Process(pid)
	if p == nil {
		s.t.Fatalf("no process %d", pid)
	}
	return p
}

// spawn has the given process spawn one, and returns its PID.
func (s *shell) spawn(parent int64) int64 {
	s.t.Helper()
	return s.spawnWith(parent, "")
}

// spawnWith is spawn with the member capabilities, if that is not empty.
func (s *shell) spawnWith(parent int64, capabilities string) int64 {
	s.t.Helper()
	got, err := s.run(parent, "Syscall.Spawn", s.spawning(capabilities))
	if err != nil {
		s.t.Fatal(err)
	}
	row, _ := schema.Lookup("Syscall.Spawn")
	out, err := row.Output().Decode([]byte(got))
	if err != nil {
		s.t.Fatal(err)
	}
	return out.(*schema.SpawnOutput).ChildPID
}

// spawning is the data of a spawn whose child is named after its future PID.
func (s *shell) spawning(capabilities string) string {
	data := fmt.Sprintf(`{"child_agent_id":"a%d"`, len(s.pids())+1)
	if capabilities != "" {
		data += `,"capabilities":` + capabilities
	}
	return data + "}"
}

// named is the child's name that spawning chose.
func (s *shell) named(parent, child int64) string {
	name := fmt.Sprintf("a%d", child)
	if parent != kernel.Operator {
		name = s.get(parent).AgentID + "/" + name
	}
	return name
}

func (s *shell) pids() []int64 {
	var pids []int64
	for pid := int64(1); s.domain.Processes().Process(pid) != nil; pid++ {
		pids = append(pids, pid)
	}
	return pids
}

// sameRow makes cmp compare rows of the syscall table by identity.
var sameRow = cmp.Comparer(func(a, b *schema.Syscall) bool { return a == b })

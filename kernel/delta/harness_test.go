package delta_test

import (
	"errors"
	"fmt"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/delta"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	home  = "https://home.local/"
	other = "https://other.local/"
)

func process(pid int64, agent, origin string) schema.Descriptor {
	return schema.Descriptor{PID: pid, AgentID: agent, State: "READY", Priority: "NORMAL", Origin: origin}
}

// shell handles a message as the kernel's shell does: it decodes, decides, takes steps, applies and keeps a journal.
type shell struct {
	rapid.TB
	domain  *delta.Domain
	origins domaintest.Table
	journal domaintest.Journal
	tick    int64
}

// newShell has processes 1 and 2 of agent ada, 3 of agent bob, and 4 of another origin's ada.
func newShell(t rapid.TB) *shell {
	processes := domaintest.Table{process(1, "ada", home), process(2, "ada", home), process(3, "bob", home), process(4, "ada", other)}
	return &shell{TB: t, domain: delta.New(processes), origins: processes}
}

// run runs one message.
func (s *shell) run(pid int64, typ, data string) (string, error) {
	s.Helper()
	origin := home
	if p := s.origins.Process(pid); p != nil {
		origin = p.Origin
	}
	call := s.request(pid, origin, typ, data)
	result, err := domaintest.Decide(s, s.domain, call)
	if err != nil {
		return "", err
	}
	for _, step := range result.Steps {
		input, err := schema.Marshal(step.Input)
		if err != nil {
			s.Fatal(err)
		}
		own := s.request(kernel.Operator, origin, step.Row.Type, string(input))
		done, err := domaintest.Decide(s, s.domain, own)
		if err != nil {
			s.Fatalf("step %s: %v", step.Row.Type, err)
		}
		s.journal.Apply(s.domain, own, done.Data)
	}
	s.journal.Apply(s.domain, call, result.Data)
	return string(result.Data), nil
}

func (s *shell) request(pid int64, origin, typ, data string) *kernel.Call {
	s.Helper()
	call := domaintest.Request(s, typ, data)
	call.PID, call.Origin, call.Tick = pid, origin, s.tick
	return call
}

// replay rebuilds the state from the journal alone, without a process table.
func (s *shell) replay() *shell {
	s.Helper()
	again := &shell{TB: s.TB, domain: delta.New(domaintest.Table{}), origins: s.origins}
	s.journal.Replay(s, again.domain)
	return again
}

// restored rebuilds the state from a snapshot.
func (s *shell) restored() *shell {
	s.Helper()
	again := &shell{TB: s.TB, domain: delta.New(s.origins), origins: s.origins, tick: s.tick}
	domaintest.Restore(s, s.domain, again.domain)
	return again
}

func (s *shell) snapshot() []byte { return domaintest.Snapshot(s, s.domain) }

func (s *shell) chunks() (all [][]byte) {
	s.Helper()
	if err := s.domain.Snapshot()(func(chunk []byte) error {
		all = append(all, chunk)
		return nil
	}); err != nil {
		s.Fatal(err)
	}
	return all
}

// want runs a message and compares its answer.
func (s *shell) want(pid int64, typ, data, answer string) {
	s.Helper()
	if got, err := s.run(pid, typ, data); err != nil || got != answer {
		s.Errorf("pid %d, %s %s: %s, %v, want %s", pid, typ, data, got, err, answer)
	}
}

// fails runs a message and compares its error.
func (s *shell) fails(pid int64, typ, data string, class fault.Kind, message string) {
	s.Helper()
	_, err := s.run(pid, typ, data)
	if shown, ok := errors.AsType[*fault.Fault](err); !ok || shown.Kind != class || shown.Message != message {
		s.Errorf("pid %d, %s %s: %v, want class %d: %s", pid, typ, data, err, class, message)
	}
}

// answer is that of Syscall.GetState about a process of the table, given the member memory: "" for none.
func (s *shell) answer(pid int64, memory string) string {
	p := s.origins.Process(pid)
	if memory != "" {
		memory = `,"memory":` + memory
	}
	return fmt.Sprintf(`{"pid":%d,"agent_id":%q,"parent_pid":0,"state":"READY","priority":"NORMAL","intent":"","role":"",`+
		`"resource_quota":{},"birth_tick":0,"origin":%q%s}`, pid, p.AgentID, p.Origin, memory)
}

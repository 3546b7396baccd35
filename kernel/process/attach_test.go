package process_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema/fault"
)

// Token implements kernel.Tokens.
func (s *shell) Token(pid int64) *kernel.Token { return s.tokens[pid] }

// TestAttach: a name becomes a process once, and stays that process while it lives.
func TestAttach(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.domain.See(s, nil, nil)
	attach := func(data, want string, id fault.ID) {
		t.Helper()
		got, err := s.run(kernel.Operator, "Process.Attach", data)
		switch {
		case id == "" && (err != nil || got != want):
			t.Errorf("%s: %s, %v, want %s", data, got, err, want)
		case id != "" && (err == nil || err.ID != id || !strings.Contains(err.Text(), want)):
			t.Errorf("%s: %s, %v, want %s with %q", data, got, err, id, want)
		}
	}
	attach(`{"agent_id":"a"}`, `{"pid":1,"agent_id":"a","created":true}`, "")
	attach(`{"agent_id":"a"}`, `{"pid":1,"agent_id":"a","created":false}`, "")
	attach(`{"agent_id":"b","capabilities":{"allowed_syscalls":["SYS_ALLOC","Memory.*"],"resource_quotas":{"gpu":2},"expires_at_tick":9}}`,
		`{"pid":2,"agent_id":"b","created":true}`, "")
	s.check()
	s.domain = restore(t, s.domain)
	s.domain.See(s, nil, nil)
	attach(`{"agent_id":"b"}`, `{"pid":2,"agent_id":"b","created":false}`, "")
	attach(`{"agent_id":"b","capabilities":{"allowed_syscalls":["Memory.*","SYS_ALLOC"],"resource_quotas":{"gpu":2},"expires_at_tick":9}}`,
		`{"pid":2,"agent_id":"b","created":false}`, "")

	// Names of other callers, and other capabilities.
	for _, capabilities := range []string{
		`{"allowed_syscalls":["Memory.*"]}`,
		`{"allowed_syscalls":["Memory.*","SYS_ALLOC"],"resource_quotas":{"gpu":3},"expires_at_tick":9}`,
		`{"allowed_syscalls":["Memory.*","SYS_ALLOC"],"resource_quotas":{"gpu":2}}`,
		`{"allowed_syscalls":["Memory.*","SYS_ALLOC"],"resource_quotas":{"gpu":2},"expires_at_tick":9,"http":{"hosts":["a.example"]}}`,
	} {
		attach(`{"agent_id":"b","capabilities":`+capabilities+`}`, "pwos cap show 2", fault.ProcessOtherGrant)
	}
	attach(`{"agent_id":"b","capabilities":{"allowed_syscalls":["No.Such"]}}`, "capabilities.allowed_syscalls[0]", fault.WireInvalidInput)
	attach(`{"agent_id":"c","capabilities":{"allowed_syscalls":["No.Such"]}}`, "capabilities.allowed_syscalls[0]", fault.WireInvalidInput)
	delete(s.tokens, 2)
	attach(`{"agent_id":"b","capabilities":{"allowed_syscalls":[]}}`, "pwos cap show 2", fault.ProcessOtherGrant)
	attach(`{"agent_id":"b"}`, `{"pid":2,"agent_id":"b","created":false}`, "")
	if _, err := s.run(kernel.Operator, "Syscall.Spawn", `{"child_agent_id":"hosted","command":["/bin/true"]}`); err != nil {
		t.Fatal(err)
	}
	attach(`{"agent_id":"hosted"}`, "runs a program", fault.ProcessTaken)
	if _, err := s.run(kernel.Operator, "Syscall.Spawn", `{"child_agent_id":"keyed","intent":"key:SHA256:x"}`); err != nil {
		t.Fatal(err)
	}
	attach(`{"agent_id":"keyed"}`, "belongs to a key", fault.ProcessTaken)
	attach(`{"agent_id":"a/b"}`, "agent_id must not contain a slash", fault.WireInvalidInput)
	attach(`{"agent_id":"a\u202eb"}`, "agent_id must not have the character U+202E", fault.WireInvalidInput)

	// The operator can attach to a process without a program; an agent's child of that name is another process.
	s.tokens[1] = token(1, []string{"*"}, nil, nil)
	if _, err := s.run(1, "Syscall.Spawn", `{"child_agent_id":"d"}`); err != nil {
		t.Fatal(err)
	}
	attach(`{"agent_id":"d"}`, `{"pid":6,"agent_id":"d","created":true}`, "")
	if _, err := s.run(kernel.Operator, "Syscall.Spawn", `{"child_agent_id":"e"}`); err != nil {
		t.Fatal(err)
	}
	attach(`{"agent_id":"e"}`, `{"pid":7,"agent_id":"e","created":false}`, "")

	// The name of an ended process is free.
	s.terminate(1)
	attach(`{"agent_id":"a"}`, `{"pid":8,"agent_id":"a","created":true}`, "")
	s.check()

	call := s.request(kernel.Operator, "Process.Attach", `{"agent_id":"a"}`)
	call.Refused = fault.ConnectionFollows.New("it follows")
	if _, err := s.domain.Decide(call); fault.Of(err).ID != fault.ConnectionFollows {
		t.Errorf("with subscriptions: %v", err)
	}
	call = s.request(kernel.Operator, "Process.Attach", `{"agent_id":"a"}`)
	call.Origin = "https://other.example/"
	if result, err := s.domain.Decide(call); err != nil || !strings.Contains(string(result.Data), `"pid":9`) {
		t.Errorf("in another origin: %s, %v", result.Data, err)
	}
}

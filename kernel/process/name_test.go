package process_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestNames: an agent's child has its parent's name as a prefix, and two living siblings never have the same name,
// after a restart too.
func TestNames(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	spawn := func(parent int64, name, want string, class fault.Kind) {
		t.Helper()
		got, err := s.run(parent, "Syscall.Spawn", `{"child_agent_id":"`+name+`","capabilities":{"allowed_syscalls":["*"]}}`)
		switch {
		case want != "" && (err != nil || !strings.HasSuffix(got, `"child_agent_id":"`+want+`"}`)):
			t.Errorf("%s below %d: %s, %v", name, parent, got, err)
		case want == "" && (err == nil || err.Kind != class || !strings.Contains(err.Text(), "child_agent_id")):
			t.Errorf("%s below %d: %s, %v, want class %d", name, parent, got, err, class)
		}
	}
	spawn(kernel.Operator, "boss", "boss", 0)
	spawn(1, "worker", "boss/worker", 0)
	spawn(2, "worker", "boss/worker/worker", 0)
	spawn(kernel.Operator, "worker", "worker", 0)
	for range 2 {
		spawn(kernel.Operator, "boss", "", fault.Conflict)
		spawn(1, "worker", "", fault.Conflict)
		s.domain = restore(t, s.domain)
	}
	spawn(kernel.Operator, "boss/worker", "", fault.InvalidInput)
	spawn(1, "a/b", "", fault.InvalidInput)
	if got := s.get(3).AgentID; got != "boss/worker/worker" {
		t.Errorf("the descriptor says %s", got)
	}
	s.check()
	s.terminate(2)
	spawn(1, "worker", "boss/worker", 0)
	s.check()

	last := int64(4)
	for range 3 { // 256 characters each, below 6
		name := strings.Repeat("ü", 256)
		spawn(last, name, s.get(last).AgentID+"/"+name, 0)
		last = int64(len(s.pids()))
	}
	spawn(last, strings.Repeat("ü", 256), "", fault.InvalidInput)
}

// TestOldNames: a journal from before names were unique.
func TestOldNames(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.journal.Apply(s.domain, s.request(kernel.Operator, "Syscall.Spawn", `{"child_agent_id":"x"}`), []byte(`{"child_pid":1,"child_agent_id":"x"}`))
	for _, child := range []string{"2", "3"} {
		s.journal.Apply(s.domain, s.request(1, "Syscall.Spawn", `{"child_agent_id":"x/y"}`), []byte(`{"child_pid":`+child+`,"child_agent_id":"x/y"}`))
	}
	s.domain.Publish()
	for _, pid := range []int64{2, 3} {
		if got := s.get(pid).AgentID; got != "x/y" {
			t.Errorf("pid %d is %s", pid, got)
		}
		if _, err := s.run(1, "Syscall.Spawn", `{"child_agent_id":"y"}`); err == nil || err.Kind != fault.Conflict {
			t.Errorf("a process got the name of a living sibling: %v", err)
		}
		s.terminate(pid)
	}
	s.tokens[1] = token(1, []string{"*"}, nil, nil)
	if _, err := s.run(1, "Syscall.Spawn", `{"child_agent_id":"y"}`); err != nil {
		t.Error(err)
	}
	s.check()
}

// TestNewNames: what a command line could not tell from a PID, a step or another kernel's process is no name of a new agent. The name of
// a key's agent is the kernel's.
func TestNewNames(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for name, instead := range map[string]string{
		"12": "agent-12", "007": "agent-007", "a:1": "a-1", "a@beta": "a-beta", "#3": "-3", "key:SHA256:abc": "key-SHA256-abc",
	} {
		for call, field := range map[string]string{"Syscall.Spawn": "child_agent_id", "Process.Attach": "agent_id"} {
			_, err := s.run(kernel.Operator, call, `{"`+field+`":"`+name+`"}`)
			if err == nil || err.Code() != 422 || !strings.Contains(err.Text(), field) || !strings.HasSuffix(err.Fix, "such as "+instead) {
				t.Errorf("%s of %s: %v", call, name, err)
			}
		}
	}
	spawned := func(by int64, data string) bool {
		_, err := s.run(by, "Syscall.Spawn", data)
		return err == nil
	}
	for _, name := range []string{"v2", "a.1", "1-2", "٣"} {
		if !spawned(kernel.Operator, `{"child_agent_id":"`+name+`","capabilities":{"allowed_syscalls":["*"]}}`) {
			t.Errorf("%s is refused", name)
		}
	}
	const ofKey = `{"child_agent_id":"key:SHA256:abc","intent":"key:SHA256:abc"}`
	if spawned(1, ofKey) {
		t.Error("an agent gives its child the name of a key's agent")
	}
	if !spawned(kernel.Operator, ofKey) {
		t.Error("the name of a key's agent is refused")
	}
	if _, err := s.run(kernel.Operator, "Process.Attach", `{"agent_id":"key:SHA256:abc"}`); err == nil || err.ID != fault.ProcessTaken {
		t.Errorf("attach to a key's agent: %v", err)
	}
	s.check()
}

// TestOldNamesStay: an agent that has such a name from before is replayed, and a connection can still become it.
func TestOldNamesStay(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.journal.Apply(s.domain, s.request(kernel.Operator, "Syscall.Spawn", `{"child_agent_id":"7:a"}`), []byte(`{"child_pid":1,"child_agent_id":"7:a"}`))
	s.domain = restore(t, s.domain)
	if got, err := s.run(kernel.Operator, "Process.Attach", `{"agent_id":"7:a"}`); err != nil || !strings.Contains(got, `"created":false`) {
		t.Errorf("attach: %s, %v", got, err)
	}
}

package process_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// model is the process table in its simplest form.
type model struct{ processes []entry } // by PID - 1

type entry struct {
	parent int64
	exit   int64 // tick at which it ended; -1: it lives
}

func (m *model) alive(pid int64) bool {
	return pid == 0 || (m.exists(pid) && m.processes[pid-1].exit < 0)
}

func (m *model) exists(pid int64) bool { return pid >= 1 && pid <= int64(len(m.processes)) }

func (m *model) within(pid, root int64) bool {
	return pid == root || (pid != 0 && m.within(m.processes[pid-1].parent, root))
}

// TestModel: after any calls in any order the table equals the model, no child holds more than its parent, and both
// replay and restoring give the same state.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, m := newShell(t), &model{}
		anyone := func() int64 { return rapid.Int64Range(0, int64(len(m.processes))+1).Draw(t, "pid") }
		t.Repeat(map[string]func(*rapid.T){
			"spawn":     func(*rapid.T) { m.spawn(t, s, anyone()) },
			"terminate": func(*rapid.T) { m.terminate(t, s, anyone(), max(1, anyone())) },
			"tick":      func(*rapid.T) { s.tick += rapid.Int64Range(0, 3).Draw(t, "ticks") },
			"crash": func(*rapid.T) { // a spawn that ends after its first step
				note := fmt.Sprintf(`{"pid":%d,"resource_quota":{"gpu":999}}`, len(m.processes)+1)
				s.journal.Apply(s.domain, s.request(kernel.Operator, "Process.Prepare", note), []byte(`{"success":true}`))
			},
			"restart": func(*rapid.T) { s.domain = restore(t, s.domain) },
			"":        func(*rapid.T) { m.compare(t, s) },
		})
		s.check()
	})
}

func (m *model) spawn(t *rapid.T, s *shell, parent int64) {
	asked := rapid.SampledFrom([]string{
		``, `{"allowed_syscalls":["*"]}`, `{"allowed_syscalls":["SYS_SPAWN","Memory.*"],"resource_quotas":{"gpu":100}}`,
		`{"allowed_syscalls":["SYS_SPAWN"],"resource_quotas":{"ram":5},"expires_at_tick":9}`,
		`{"allowed_syscalls":["Syscall.Spawn","Memory.Get"],"expires_at_tick":8}`,
	}).Draw(t, "capabilities")
	child := int64(len(m.processes)) + 1
	got, err := s.run(parent, "Syscall.Spawn", s.spawning(asked))
	switch {
	case !m.alive(parent):
		if err == nil || (err.Kind != fault.Ended && err.Kind != fault.Conflict) {
			t.Fatalf("%d, which has ended, spawned: %s, %v", parent, got, err)
		}
		return
	case err != nil && (parent == 0 || asked == "" || err.Kind != fault.Forbidden):
		t.Fatal(err)
	case err != nil:
		return
	}
	if want := fmt.Sprintf(`{"child_pid":%d,"child_agent_id":%q}`, child, s.named(parent, child)); got != want {
		t.Fatalf("answer %s", got)
	}
	m.processes = append(m.processes, entry{parent, -1})
	if parent != 0 {
		if err := s.tokens[parent].Covers(&s.tokens[child].Granted.TokenGrant, s.tick); err != nil {
			t.Fatalf("pid %d holds more than its parent: %v", child, err)
		}
	}
}

func (m *model) terminate(t *rapid.T, s *shell, by, target int64) {
	_, err := s.run(by, "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, target))
	switch {
	case !m.exists(target):
		if err == nil || err.Kind != fault.NotFound {
			t.Fatalf("%d, which never existed, was ended: %v", target, err)
		}
		return
	case !m.within(target, by):
		if err == nil || err.Kind != fault.Forbidden {
			t.Fatalf("%d ended %d: %v", by, target, err)
		}
		return
	case err != nil:
		t.Fatal(err)
	}
	var ends []int64
	for i := range m.processes {
		pid := int64(i) + 1
		if m.alive(pid) && m.within(pid, target) {
			ends = append(ends, pid)
		}
	}
	if len(ends) == 0 && s.steps != nil {
		t.Fatalf("steps to end %d, which has ended", target)
	}
	for _, step := range s.steps {
		exit, ok := step.Input.(*schema.ProcessExitInput)
		if !ok {
			continue
		}
		for i, pid := range exit.PIDs {
			if parent := m.processes[pid-1].parent; slices.Contains(exit.PIDs[:i], parent) {
				t.Fatalf("%v: %d ends after its parent %d", exit.PIDs, pid, parent)
			}
		}
		if got := slices.Sorted(slices.Values(exit.PIDs)); !slices.Equal(got, ends) {
			t.Fatalf("%v end, want %v", got, ends)
		}
	}
	for _, pid := range ends {
		m.processes[pid-1].exit = s.tick
	}
}

func (m *model) compare(t *rapid.T, s *shell) {
	if got := s.pids(); len(got) != len(m.processes) {
		t.Fatalf("%d processes, want %d", len(got), len(m.processes))
	}
	for i, e := range m.processes {
		pid := int64(i) + 1
		p := s.get(pid)
		if p.PID != pid || p.ParentPID != e.parent || (p.State == "READY") != (e.exit < 0) || (p.ExitTick == nil) != (e.exit < 0) {
			t.Fatalf("got %+v, want %+v", p, e)
		}
		if e.exit >= 0 && *p.ExitTick != e.exit {
			t.Fatalf("pid %d ended at %d, want %d", pid, *p.ExitTick, e.exit)
		}
		if s.domain.Alive(pid) != m.alive(pid) || (s.tokens[pid] != nil) != m.alive(pid) {
			t.Fatalf("pid %d: alive %v, token %v", pid, s.domain.Alive(pid), s.tokens[pid])
		}
		if e.exit < 0 && !m.alive(e.parent) {
			t.Fatalf("%d outlives its parent %d", pid, e.parent)
		}
	}
}

package process_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func (s *shell) terminate(pid int64) []schema.Request {
	s.t.Helper()
	got, err := s.run(kernel.Operator, "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid))
	if want := fmt.Sprintf(`{"target_pid":%d}`, pid); err != nil || got != want {
		s.t.Fatalf("%s, %v", got, err)
	}
	return s.steps
}

// family spawns 1 with the children 2 and 3, 2 with the child 4, and a stranger 5.
func family(t domaintest.TB) *shell {
	s := newShell(t)
	for _, parent := range []int64{0, 1, 1, 2, 0} {
		s.spawn(parent)
	}
	return s
}

// TestTerminate: the whole subtree ends, children first, and its resources are released.
func TestTerminate(t *testing.T) {
	t.Parallel()
	s := family(t)
	s.tick = 8
	if _, err := s.run(kernel.Operator, "Syscall.Terminate", `{"target_pid":1,"reason":"done"}`); err != nil {
		t.Fatal(err)
	}
	pids := []int64{4, 3, 2, 1}
	want := []schema.Request{
		schema.ProcessExit.With(&schema.ProcessExitInput{PIDs: pids, Reason: "done"}),
		schema.CapabilityStrip.With(&schema.StripInput{PIDs: pids}),
		schema.ResourceFree.With(&schema.ResourceFreeInput{PIDs: pids}),
		schema.IPCClose.With(&schema.MailboxInput{PIDs: pids}),
	}
	if diff := cmp.Diff(want, s.steps, sameRow); diff != "" {
		t.Fatal(diff)
	}
	for _, pid := range pids {
		if p := s.get(pid); p.State != "TERMINATED" || p.ExitTick == nil || *p.ExitTick != 8 || p.AgentID != s.named(p.ParentPID, pid) {
			t.Errorf("%+v", p)
		}
	}
	if p := s.get(5); p.State != "READY" || p.ExitTick != nil {
		t.Errorf("%+v", p)
	}
	s.tick = 9
	if steps := s.terminate(1); steps != nil {
		t.Errorf("twice: steps %+v", steps)
	}
	if p := s.get(1); *p.ExitTick != 8 {
		t.Errorf("twice: %+v", p)
	}
	if next := s.spawn(kernel.Operator); next != 6 {
		t.Errorf("next pid %d", next)
	}
	s.check()
}

// TestTerminateAuthority: an agent can end itself and its descendants, no other process.
func TestTerminateAuthority(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pid, target int64
		class       fault.Kind // Internal: allowed
		ends        []int64
	}{
		{1, 1, fault.Internal, []int64{4, 3, 2, 1}},
		{1, 2, fault.Internal, []int64{4, 2}},
		{1, 4, fault.Internal, []int64{4}},
		{2, 4, fault.Internal, []int64{4}},
		{4, 2, fault.Forbidden, nil},
		{2, 3, fault.Forbidden, nil},
		{1, 5, fault.Forbidden, nil},
		{5, 1, fault.Forbidden, nil},
		{1, 6, fault.NotFound, nil},
		{0, 6, fault.NotFound, nil},
		{0, 5, fault.Internal, []int64{5}},
	} {
		t.Run(fmt.Sprintf("%d ends %d", c.pid, c.target), func(t *testing.T) {
			t.Parallel()
			s := family(t)
			_, err := s.run(c.pid, "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, c.target))
			if c.ends == nil {
				if err == nil || err.Kind != c.class {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, pid := range s.pids() {
				if ended := s.get(pid).State == "TERMINATED"; ended != slices.Contains(c.ends, pid) {
					t.Errorf("pid %d: ended is %v", pid, ended)
				}
			}
		})
	}
}

// TestExitTakesDescendants: even if the command names only the parent, no child outlives it.
func TestExitTakesDescendants(t *testing.T) {
	t.Parallel()
	s := family(t)
	s.journal.Apply(s.domain, s.request(kernel.Operator, "Process.Exit", `{"pids":[2,2,99],"reason":"crashed"}`), []byte(`{"success":true}`))
	s.domain.Publish()
	for pid, state := range map[int64]string{1: "READY", 2: "TERMINATED", 3: "READY", 4: "TERMINATED"} {
		if got := s.get(pid).State; got != state {
			t.Errorf("pid %d is %s", pid, got)
		}
	}
	s.check()
}

// TestDeepAndWide: a chain of 100,000 and a parent of 100,000 end without recursion, in linear time, and in steps of
// a few processes each.
func TestDeepAndWide(t *testing.T) {
	t.Parallel()
	const n, most, visits = 100_000, 256, 1024
	for name, parent := range map[string]func(pid int64) int64{
		"chain": func(pid int64) int64 { return pid - 1 },
		"star":  func(pid int64) int64 { return min(pid-1, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := process.New(nil)
			spawnMany(t, d, n, parent)
			row, _ := schema.Lookup("Syscall.Terminate")
			result, err := d.Decide(&kernel.Call{Request: kernel.Request{Syscall: row, Input: &schema.TerminateInput{TargetPID: 1}}, Decision: kernel.Decision{PID: 1, Origin: home}})
			slices := 1
			for ; err == nil && result.More != nil; slices++ {
				result, err = result.More()
			}
			testkit.Must(t, err)
			if slices < n/visits {
				t.Errorf("decided in %d slices", slices)
			}
			var ended []int64
			for _, step := range result.Steps {
				exit, ok := step.Input.(*schema.ProcessExitInput)
				if !ok {
					continue
				}
				if len(exit.PIDs) > most {
					t.Fatalf("%d processes end in one step", len(exit.PIDs))
				}
				ended = append(ended, exit.PIDs...)
				d.Apply(&kernel.Call{Request: kernel.Request{Syscall: schema.ProcessExit.Syscall, Input: exit}, Decision: kernel.Decision{Moment: kernel.Moment{Tick: 1}}})
				d.Publish()
			}
			if len(ended) != n || ended[0] != n || ended[n-1] != 1 {
				t.Fatalf("%d end, from %d to %d", len(ended), ended[0], ended[len(ended)-1])
			}
			if steps := 4 * ((n + most - 1) / most); len(result.Steps) != steps {
				t.Errorf("%d steps, want %d", len(result.Steps), steps)
			}
			for pid := int64(1); pid <= n; pid++ {
				if d.Processes().Process(pid).State != "TERMINATED" || d.Alive(pid) {
					t.Fatalf("pid %d is alive", pid)
				}
			}
		})
	}
}

// TestProgramOfMany: if a program ends by itself, the processes that end with it are found in slices too.
func TestProgramOfMany(t *testing.T) {
	t.Parallel()
	const n = 10_000
	d := process.New(nil)
	spawnMany(t, d, n, func(pid int64) int64 { return min(pid-1, 1) })
	result, err := d.Decide(&kernel.Call{Request: kernel.Request{Syscall: schema.ProcessNoteEnd.Syscall, Input: &schema.ProcessEndInput{PID: 1}}, Decision: kernel.Decision{Origin: home}})
	slices := 1
	for ; err == nil && result.More != nil; slices++ {
		result, err = result.More()
	}
	if err != nil || slices < n/1024 || len(result.Steps) != 4*((n+255)/256) {
		t.Errorf("%d steps in %d slices, %v", len(result.Steps), slices, err)
	}
}

// spawnMany applies n spawns without a capability. The children of an agent get different names, as the kernel
// requires.
func spawnMany(t domaintest.TB, d *process.Domain, n int64, parent func(pid int64) int64) {
	t.Helper()
	row, ok := schema.Lookup("Syscall.Spawn")
	if !ok {
		t.Fatal("no Syscall.Spawn")
	}
	for pid := int64(1); pid <= n; pid++ {
		by, name := parent(pid), "a"
		if by != 0 {
			name = fmt.Sprint("a", pid)
		}
		data := fmt.Appendf(nil, `{"child_pid":1,"child_agent_id":%q}`, name)
		d.Apply(&kernel.Call{Request: kernel.Request{Syscall: row, Input: &schema.SpawnInput{ChildAgentID: name}}, Decision: kernel.Decision{PID: by, Origin: home}, Outcome: kernel.Outcome{Data: data}})
	}
	d.Publish()
}

// TestRefusalsByID: programs decide by the ids of refusals.
func TestRefusalsByID(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	one, two := s.spawn(kernel.Operator), s.spawn(kernel.Operator)
	ended := s.spawn(kernel.Operator)
	s.must(kernel.Operator, "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, ended))
	for _, test := range []struct {
		pid       int64
		typ, data string
		want      fault.ID
	}{
		{one, "Process.Get", `{"pid":9}`, fault.ProcessNotFound},
		{one, "Process.Subscribe", fmt.Sprintf(`{"pid":%d}`, two), fault.CapabilityNotYours},
		{one, "Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, two), fault.CapabilityNotYours},
		{ended, "Syscall.Spawn", `{"child_agent_id":"b"}`, fault.ProcessEnded},
		{9, "Syscall.Spawn", `{"child_agent_id":"b"}`, fault.ProcessNeverWas},
		{kernel.Operator, "Syscall.Spawn", `{"child_agent_id":"a1"}`, fault.ProcessNameTaken},
		{one, "Syscall.Spawn", `{"child_agent_id":"b","command":["b"],"cwd":"/"}`, fault.CapabilityOperatorOnly},
		{one, "Syscall.Spawn", `{"child_agent_id":"b","command":["b"],"sandbox":"off"}`, fault.SandboxTooWide},
		{one, "Syscall.Spawn", `{"child_agent_id":"b","capabilities":{"allowed_syscalls":["Clock.Advance"]}}`, fault.CapabilityTooMuch},
		{kernel.Operator, "Process.NoteStart", fmt.Sprintf(`{"pid":%d,"os_pid":1,"sandbox":"","again":false}`, ended), fault.ProcessIsEnded},
	} {
		if _, err := s.run(test.pid, test.typ, test.data); err == nil || err.ID != test.want {
			t.Errorf("%s %s as %d: %v, want %s", test.typ, test.data, test.pid, err, test.want)
		}
	}
}

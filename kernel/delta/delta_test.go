package delta_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestMemoryFolds(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(1, "Syscall.GetState", `{}`, s.answer(1, ""))
	s.tick = 3
	s.want(1, "Syscall.CommitDelta",
		`{"intent_type":"find","action_type":"look","outcome":"found","changes":{"mood":"glad","at":{"x":1}},"resource_changes":{"gold":2.5,"wood":1},"relationship_changes":{"bob":0.1}}`,
		`{"agent_id":"ada","delta_seq":1}`)
	s.tick = 5
	s.want(2, "Syscall.CommitDelta",
		`{"agent_id":"ada","changes":{"at":{"x":null,"y":2}},"resource_changes":{"gold":-4},"relationship_changes":{"bob":0.2},"governance_violation":true}`,
		`{"agent_id":"ada","delta_seq":2}`)
	s.want(1, "Syscall.CommitDelta", `{"governance_violation":false}`, `{"agent_id":"ada","delta_seq":3}`)
	s.want(3, "Syscall.CommitDelta", `{"changes":{"mood":"grim"}}`, `{"agent_id":"bob","delta_seq":1}`)

	const (
		now    = `{"state":{"at":{"y":2},"mood":"glad"},"resources":{"gold":-1.5,"wood":1},"relationships":{"bob":0.30000000000000004},"deltas":3,"violations":1}`
		before = `{"state":{"at":{"x":1},"mood":"glad"},"resources":{"gold":2.5,"wood":1},"relationships":{"bob":0.1},"deltas":1,"violations":0}`
		bobs   = `{"state":{"mood":"grim"},"resources":{},"relationships":{},"deltas":1,"violations":0}`
	)
	for _, tc := range []struct {
		pid, target  int64
		data, memory string
	}{
		{1, 1, `{}`, now},
		{2, 2, `null`, now},
		{1, 1, `{"target_pid":1}`, now},
		{0, 2, `{"target_pid":2}`, now},
		{1, 1, `{"at_tick":100}`, now},
		{1, 1, `{"at_tick":5}`, now},
		{1, 1, `{"at_tick":4}`, before},
		{1, 1, `{"at_tick":3}`, before},
		{1, 1, `{"at_tick":2}`, ""},
		{1, 1, `{"at_tick":0}`, ""},
		{3, 3, `{}`, bobs},
		{4, 4, `{}`, ""}, // another origin's ada
	} {
		s.want(tc.pid, "Syscall.GetState", tc.data, s.answer(tc.target, tc.memory))
	}
}

func TestRollback(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(1, "Syscall.Rollback", `{"to_tick":0}`, `{"rolled_back_to":0,"dropped":0}`)
	for tick := range int64(4) {
		s.tick = tick * 10
		s.want(1, "Syscall.CommitDelta", fmt.Sprintf(`{"changes":{"n":%d,"k%d":1},"resource_changes":{"r":1}}`, tick, tick), fmt.Sprintf(`{"agent_id":"ada","delta_seq":%d}`, tick+1))
	}
	s.want(3, "Syscall.CommitDelta", `{"changes":{"b":1}}`, `{"agent_id":"bob","delta_seq":1}`)
	s.want(1, "Syscall.Rollback", `{"to_tick":30}`, `{"rolled_back_to":30,"dropped":0}`)
	s.want(2, "Syscall.Rollback", `{"to_tick":19,"agent_id":"ada"}`, `{"rolled_back_to":19,"dropped":2}`)
	s.want(1, "Syscall.GetState", `{}`,
		s.answer(1, `{"state":{"k0":1,"k1":1,"n":1},"resources":{"r":2},"relationships":{},"deltas":2,"violations":0}`))
	s.want(1, "Syscall.CommitDelta", `{"changes":{"n":"new"}}`, `{"agent_id":"ada","delta_seq":5}`) // 3 and 4 are used up
	s.want(1, "Syscall.GetState", `{"at_tick":29}`,
		s.answer(1, `{"state":{"k0":1,"k1":1,"n":1},"resources":{"r":2},"relationships":{},"deltas":2,"violations":0}`))
	s.want(1, "Syscall.GetState", `{}`,
		s.answer(1, `{"state":{"k0":1,"k1":1,"n":"new"},"resources":{"r":2},"relationships":{},"deltas":3,"violations":0}`))
	s.tick = 31
	s.want(0, "Syscall.CommitDelta", `{"agent_id":"eve","changes":{}}`, `{"agent_id":"eve","delta_seq":1}`)
	s.want(0, "Syscall.Rollback", `{"to_tick":30,"agent_id":"eve"}`, `{"rolled_back_to":30,"dropped":1}`)
	s.want(0, "Syscall.CommitDelta", `{"agent_id":"eve"}`, `{"agent_id":"eve","delta_seq":2}`)
	s.want(4, "Syscall.Rollback", `{"to_tick":0}`, `{"rolled_back_to":0,"dropped":0}`)
	s.want(3, "Syscall.GetState", `{}`, s.answer(3, `{"state":{"b":1},"resources":{},"relationships":{},"deltas":1,"violations":0}`))
	s.want(3, "Syscall.Rollback", `{"to_tick":0}`, `{"rolled_back_to":0,"dropped":1}`)
	s.want(3, "Syscall.GetState", `{}`, s.answer(3, ""))
}

func TestCheckpoint(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(1, "Syscall.Checkpoint", `{}`, `{"total_deltas":0,"checkpoint_id":1}`)
	s.want(1, "Syscall.CommitDelta", `{}`, `{"agent_id":"ada","delta_seq":1}`)
	s.want(2, "Syscall.CommitDelta", `{}`, `{"agent_id":"ada","delta_seq":2}`)
	s.want(3, "Syscall.CommitDelta", `{}`, `{"agent_id":"bob","delta_seq":1}`)
	s.want(4, "Syscall.CommitDelta", `{}`, `{"agent_id":"ada","delta_seq":1}`)
	s.want(1, "Syscall.Checkpoint", `{"agent_id":"ada"}`, `{"total_deltas":2,"checkpoint_id":2}`)
	s.want(4, "Syscall.Checkpoint", `null`, `{"total_deltas":1,"checkpoint_id":3}`)
	s.want(0, "Syscall.Checkpoint", `{}`, `{"total_deltas":4,"checkpoint_id":4}`)
	s.want(0, "Syscall.Checkpoint", `{"agent_id":"bob"}`, `{"total_deltas":1,"checkpoint_id":5}`)
	s.want(0, "Syscall.Checkpoint", `{"agent_id":"nobody"}`, `{"total_deltas":0,"checkpoint_id":6}`)
	s.tick = 1
	s.want(1, "Syscall.CommitDelta", `{}`, `{"agent_id":"ada","delta_seq":3}`)
	s.want(1, "Syscall.Rollback", `{"to_tick":0}`, `{"rolled_back_to":0,"dropped":1}`)
	s.want(0, "Syscall.Checkpoint", `{}`, `{"total_deltas":4,"checkpoint_id":7}`)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.want(3, "Syscall.CommitDelta", `{"resource_changes":{"gold":1e308},"relationship_changes":{"ada":-1.7e308}}`, `{"agent_id":"bob","delta_seq":1}`)
	const (
		notBobs  = `pid 1 may not touch the memory of agent "bob": its own agent is "ada": leave out agent_id, or ask the operator`
		unnamed  = "Invalid input: agent_id is missing: the operator has no memory of its own: name an agent, or act as a process with pid"
		noTarget = "Invalid input: target_pid is missing: the operator has no state of its own: name a process, or act as one with pid"
		nobody   = "no process has pid 9: Process.List names them all"
	)
	for _, tc := range []struct {
		pid       int64
		typ, data string
		class     fault.Kind
		message   string
	}{
		{1, "Syscall.CommitDelta", `{"agent_id":"bob"}`, fault.Forbidden, notBobs},
		{1, "Syscall.Rollback", `{"agent_id":"bob","to_tick":0}`, fault.Forbidden, notBobs},
		{1, "Syscall.Checkpoint", `{"agent_id":"bob"}`, fault.Forbidden, notBobs},
		{0, "Syscall.CommitDelta", `{}`, fault.InvalidInput, unnamed},
		{0, "Syscall.Rollback", `{"to_tick":0}`, fault.InvalidInput, unnamed},
		{9, "Syscall.CommitDelta", `{}`, fault.NotFound, nobody},
		{9, "Syscall.Rollback", `{"to_tick":0}`, fault.NotFound, nobody},
		{9, "Syscall.Checkpoint", `{}`, fault.NotFound, nobody},
		{9, "Syscall.GetState", `{}`, fault.NotFound, nobody},
		{0, "Syscall.GetState", `{"target_pid":9}`, fault.NotFound, nobody},
		{0, "Syscall.GetState", `{}`, fault.InvalidInput, noTarget},
		{1, "Syscall.GetState", `{"target_pid":2}`, fault.Forbidden, "pid 1 may only read its own state, not that of pid 2: leave out target_pid, or ask the operator"},
		{1, "Syscall.GetState", `{"target_pid":9}`, fault.Forbidden, "pid 1 may only read its own state, not that of pid 9: leave out target_pid, or ask the operator"},
		{
			3, "Syscall.CommitDelta", `{"resource_changes":{"wood":1,"gold":1e308}}`, fault.InvalidInput,
			"Invalid input: resource_changes.gold must leave a finite sum: it is 1e+308 already, and 1e+308 more is too much",
		},
		{
			3, "Syscall.CommitDelta", `{"relationship_changes":{"ada":-1e308}}`, fault.InvalidInput,
			"Invalid input: relationship_changes.ada must leave a finite sum: it is -1.7e+308 already, and -1e+308 more is too much",
		},
	} {
		s.fails(tc.pid, tc.typ, tc.data, tc.class, tc.message)
	}
	s.want(3, "Syscall.GetState", `{}`, s.answer(3, `{"state":{},"resources":{"gold":1e+308},"relationships":{"ada":-1.7e+308},"deltas":1,"violations":0}`))
}

func TestForeignCallIsRefused(t *testing.T) {
	t.Parallel()
	call := &kernel.Call{Request: kernel.Request{Input: &schema.EchoInput{}, Message: schema.Message{Type: "Syscall.Echo"}}}
	if _, err := newShell(t).domain.Decide(call); err == nil || fault.Of(err).Kind != fault.Internal {
		t.Errorf("error %v", err)
	}
}

// TestTicksNeverGoBack commits at an earlier tick than before: the state at a tick is still a fold of a prefix.
func TestTicksNeverGoBack(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.tick = 9
	s.want(1, "Syscall.CommitDelta", `{"changes":{"a":1}}`, `{"agent_id":"ada","delta_seq":1}`)
	s.tick = 4
	s.want(1, "Syscall.CommitDelta", `{"changes":{"a":2}}`, `{"agent_id":"ada","delta_seq":2}`)
	s.want(1, "Syscall.GetState", `{"at_tick":4}`, s.answer(1, ""))
	s.want(1, "Syscall.Rollback", `{"to_tick":8}`, `{"rolled_back_to":8,"dropped":2}`)
}

// TestFaults: a program decides by the id, and a person sees what it was about.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pid       int64
		typ, data string
		id        fault.ID
		details   []fault.Detail
	}{
		{9, "Syscall.CommitDelta", `{}`, fault.ProcessNotFound, []fault.Detail{{Name: "pid", Value: "9"}}},
		{0, "Syscall.GetState", `{"target_pid":9}`, fault.ProcessNotFound, []fault.Detail{{Name: "pid", Value: "9"}}},
		{1, "Syscall.GetState", `{"target_pid":3}`, fault.CapabilityNotYours, []fault.Detail{{Name: "pid", Value: "3"}}},
		{1, "Syscall.Rollback", `{"to_tick":0,"agent_id":"bob"}`, fault.CapabilityNotYours, []fault.Detail{{Name: "agent", Value: "bob"}}},
	} {
		s := newShell(t)
		_, err := s.run(tt.pid, tt.typ, tt.data)
		if !errors.Is(err, tt.id) || !slices.Equal(domaintest.Shown(t, err).Details, tt.details) {
			t.Errorf("%s %s as %d: %v, want %s with %v", tt.typ, tt.data, tt.pid, err, tt.id, tt.details)
		}
	}
}

package process_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func tick(n int64) *int64 { return &n }

func token(pid int64, allowed []string, quotas map[string]float64, expires *int64) *kernel.Token {
	return &kernel.Token{Granted: schema.Token{PID: pid, TokenGrant: schema.TokenGrant{AllowedSyscalls: allowed, ResourceQuotas: quotas, ExpiresAtTick: expires}}}
}

var ten = []string{
	"Ipc.Receive", "SYS_ALLOC", "SYS_CHECKPOINT", "SYS_COMMIT_DELTA", "SYS_GET_STATE", "SYS_QUERY",
	"SYS_RELEASE", "SYS_ROLLBACK", "SYS_SEND_MSG", "SYS_SPAWN", "SYS_TERMINATE",
}

// TestGrant: the grant of a child, by its spawner.
func TestGrant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		parent *kernel.Token // nil: the operator
		asked  string
		want   schema.GrantInput
	}{
		{"operator, default", nil, ``, schema.GrantInput{
			AllowedSyscalls: ten, ResourceQuotas: map[string]float64{"gpu": 200, "ram": 200},
		}},
		{"operator, asked", nil, `{"allowed_syscalls":["Memory.*","*","*"],"resource_quotas":{"gpu":1e6},"expires_at_tick":9}`, schema.GrantInput{
			AllowedSyscalls: []string{"*", "Memory.*"}, ResourceQuotas: map[string]float64{"gpu": 1e6}, ExpiresAtTick: tick(9),
		}},
		{"agent, default, holding all", token(1, []string{"*"}, map[string]float64{"gpu": 500, "ram": 200}, nil), ``, schema.GrantInput{
			AllowedSyscalls: ten, ResourceQuotas: map[string]float64{"gpu": 200, "ram": 200},
		}},
		{
			"agent, default, cut down", token(1, []string{"SYS_SPAWN", "Syscall.Alloc", "Memory.Get"}, map[string]float64{"gpu": 3}, tick(70)), ``,
			schema.GrantInput{
				AllowedSyscalls: []string{"SYS_ALLOC", "SYS_SPAWN"}, ResourceQuotas: map[string]float64{"gpu": 3}, ExpiresAtTick: tick(70),
			},
		},
		{
			"agent, asked within", token(1, []string{"SYS_SPAWN", "Memory.*"}, map[string]float64{"gpu": 3}, tick(70)),
			`{"allowed_syscalls":["Memory.Set"],"resource_quotas":{"gpu":3},"expires_at_tick":70}`,
			schema.GrantInput{
				AllowedSyscalls: []string{"Memory.Set"}, ResourceQuotas: map[string]float64{"gpu": 3}, ExpiresAtTick: tick(70),
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, parent := newShell(t), kernel.Operator
			if c.parent != nil {
				parent = s.spawn(kernel.Operator)
				s.tokens[parent] = c.parent
			}
			s.tick = 5
			child := s.spawnWith(parent, c.asked)
			c.want.PID = child
			if len(s.steps) != 3 || s.steps[0].Row.Type != "Process.Prepare" || s.steps[1].Row.Type != "Capability.Endow" || s.steps[2].Row.Type != "Ipc.Open" {
				t.Fatalf("steps %+v", s.steps)
			}
			if diff := cmp.Diff(&schema.EndowInput{GrantInput: c.want, GrantedBy: &parent}, s.steps[1].Input); diff != "" {
				t.Errorf("grant: %s", diff)
			}
			if diff := cmp.Diff(&schema.MailboxInput{PIDs: []int64{child}}, s.steps[2].Input); diff != "" {
				t.Errorf("mailbox: %s", diff)
			}
			want := &schema.Descriptor{
				PID: child, AgentID: s.named(parent, child), ParentPID: parent, State: "READY", Priority: "NORMAL",
				ResourceQuota: c.want.ResourceQuotas, BirthTick: 5, Origin: home,
			}
			if diff := cmp.Diff(want, s.get(child)); diff != "" {
				t.Errorf("descriptor: %s", diff)
			}
			s.check()
		})
	}
}

// TestSpawnRefused: spawners without the right, or with too little to give.
func TestSpawnRefused(t *testing.T) {
	t.Parallel()
	holder := token(1, []string{"SYS_SPAWN", "Memory.Get"}, map[string]float64{"gpu": 3}, tick(70))
	for _, c := range []struct {
		name   string
		pid    int64
		token  *kernel.Token
		asked  string
		class  fault.Kind
		begins string
	}{
		{"unknown parent", 9, token(9, []string{"*"}, nil, nil), ``, fault.Conflict, "pid 9 never existed"},
		{"dead parent", 2, token(2, []string{"*"}, nil, nil), ``, fault.Ended, "pid 2 has ended"},
		{"no token", 1, nil, ``, fault.Forbidden, "pid 1 cannot spawn: it has no token"},
		{"syscall", 1, holder, `{"allowed_syscalls":["Memory.Set"],"expires_at_tick":70}`, fault.Forbidden, "pid 1 may not grant Memory.Set"},
		{"quota", 1, holder, `{"allowed_syscalls":["SYS_SPAWN"],"resource_quotas":{"gpu":4},"expires_at_tick":70}`, fault.Forbidden, "pid 1 may not grant a quota of 4 of gpu: its own is 3"},
		{"expiry", 1, holder, `{"allowed_syscalls":["SYS_SPAWN"]}`, fault.Forbidden, "pid 1 may not grant beyond tick 70"},
		{"no such syscall", 0, nil, `{"allowed_syscalls":["*","Memory.Sett"]}`, fault.InvalidInput, "Invalid input: capabilities.allowed_syscalls[1] is"},
		{"no such pool", 0, nil, `{"allowed_syscalls":["*"],"resource_quotas":{"tpu":1}}`, fault.InvalidInput, "Invalid input: capabilities.resource_quotas.tpu names no resource"},
		{"internal", 0, nil, `{"allowed_syscalls":["Process.Exit"]}`, fault.InvalidInput, "Invalid input: capabilities.allowed_syscalls[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			s.spawn(kernel.Operator)
			s.terminate(s.spawn(kernel.Operator))
			s.tokens = map[int64]*kernel.Token{c.pid: c.token}
			before := len(s.pids())
			_, err := s.run(c.pid, "Syscall.Spawn", s.spawning(c.asked))
			if err == nil || err.Kind != c.class || !strings.HasPrefix(err.Text(), c.begins) {
				t.Fatalf("got %+v", err)
			}
			if strings.HasPrefix(err.Text(), "Invalid input: ") && !strings.Contains(err.Message, err.Field) {
				t.Errorf("field %q, message %q", err.Field, err.Text())
			}
			if got := len(s.pids()); got != before {
				t.Errorf("%d processes, before %d", got, before)
			}
		})
	}
}

// TestSpawnTold: the descriptor has the spawner's intent, role and priority.
func TestSpawnTold(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	got, err := s.run(kernel.Operator, "Syscall.Spawn", `{"child_agent_id":"q\"ü","intent":"sort","role":"helper","priority":"URGENT"}`)
	if err != nil || got != `{"child_pid":1,"child_agent_id":"q\"ü"}` {
		t.Fatalf("%s, %v", got, err)
	}
	got, err = s.run(kernel.Operator, "Process.Get", `{"pid":1}`)
	want := `{"pid":1,"agent_id":"q\"ü","parent_pid":0,"state":"READY","priority":"URGENT","intent":"sort","role":"helper",` +
		`"resource_quota":{"gpu":200,"ram":200},"birth_tick":0,"origin":"https://home.local/"}`
	if err != nil || got != want {
		t.Fatalf("%s, %v", got, err)
	}
}

// TestStaleNote: a spawn that a crash interrupted does not affect the next child, which has its PID.
func TestStaleNote(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	note := s.request(kernel.Operator, "Process.Prepare", `{"pid":1,"resource_quota":{"gpu":7}}`)
	s.journal.Apply(s.domain, note, []byte(`{"success":true}`))
	s.check()
	if child := s.spawnWith(kernel.Operator, `{"allowed_syscalls":["*"],"resource_quotas":{"ram":2}}`); child != 1 {
		t.Fatalf("child %d", child)
	}
	if diff := cmp.Diff(map[string]float64{"ram": 2}, s.get(1).ResourceQuota); diff != "" {
		t.Error(diff)
	}
	s.journal.Apply(s.domain, s.request(kernel.Operator, "Process.Prepare", `{"pid":9,"resource_quota":{"gpu":7}}`), nil)
	s.journal.Apply(s.domain, s.request(kernel.Operator, "Syscall.Spawn", s.spawning("")), []byte(`{"child_pid":2,"child_agent_id":"a2"}`))
	s.domain.Publish()
	if quota := s.get(2).ResourceQuota; len(quota) != 0 {
		t.Errorf("the note for another process was applied to pid 2: %v", quota)
	}
	if bytes.Contains(domaintest.Snapshot(t, s.domain), []byte("prepared")) {
		t.Error("the state still has the note")
	}
}

// No new agent gets a name that people cannot read.
func TestSpawnWithHiddenCharacters(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"child_agent_id", "intent"} {
		names := map[string]string{"child_agent_id": "scout", "intent": "look"}
		names[field] += "\u202e"
		_, err := newShell(t).run(0, "Syscall.Spawn", `{"child_agent_id":"`+names["child_agent_id"]+`","intent":"`+names["intent"]+`"}`)
		domaintest.WantError(t, err, fault.InvalidInput,
			"Invalid input: "+field+" must not have the character U+202E, which is not visible or changes how the text around it is shown: leave it out")
	}
}

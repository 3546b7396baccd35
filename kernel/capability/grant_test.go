package capability_test

import (
	"errors"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema/fault"
)

const ten = `"Ipc.Receive","SYS_ALLOC","SYS_CHECKPOINT","SYS_COMMIT_DELTA","SYS_GET_STATE","SYS_QUERY","SYS_RELEASE","SYS_ROLLBACK","SYS_SEND_MSG","SYS_SPAWN","SYS_TERMINATE"`

func TestGrantAnswersTheToken(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name             string
		from             caller
		typ, data, token string
	}{
		{
			"all members", operator, "Capability.Grant",
			`{"pid":2,"allowed_syscalls":["SYS_QUERY","Memory.*","Memory.*"],"resource_quotas":{"gpu":2.5,"cpu":1e6},"expires_at_tick":9}`,
			`{"pid":2,"allowed_syscalls":["Memory.*","SYS_QUERY"],"resource_quotas":{"cpu":1000000,"gpu":2.5},"expires_at_tick":9}`,
		},
		{
			"least members", operator, "Capability.Grant", `{"pid":2,"allowed_syscalls":[]}`,
			`{"pid":2,"allowed_syscalls":[],"resource_quotas":{}}`,
		},
		{
			"default", operator, "Capability.GrantDefault", `{"pid":4}`,
			`{"pid":4,"allowed_syscalls":[` + ten + `],"resource_quotas":{"cpu":200,"gpu":200}}`,
		},
		{
			"default of one pool", operator, "Capability.GrantDefault", `{"pid":4,"resources":["gpu","gpu"]}`,
			`{"pid":4,"allowed_syscalls":[` + ten + `],"resource_quotas":{"gpu":200}}`,
		},
		{
			"default of no pool", operator, "Capability.GrantDefault", `{"pid":4,"resources":[]}`,
			`{"pid":4,"allowed_syscalls":[` + ten + `],"resource_quotas":{}}`,
		},
		{
			"by an agent to its child", agent(1, "Memory.*"), "Capability.Grant",
			`{"pid":2,"allowed_syscalls":["Memory.Set"],"resource_quotas":{"gpu":10}}`,
			`{"pid":2,"allowed_syscalls":["Memory.Set"],"resource_quotas":{"gpu":10}}`,
		},
		{
			"by an agent to its grandchild", agent(1, "*"), "Capability.Grant", `{"pid":3,"allowed_syscalls":["*"]}`,
			`{"pid":3,"allowed_syscalls":["*"],"resource_quotas":{}}`,
		},
		{
			"by the kernel to who is not there yet", operator, "Capability.Endow",
			`{"pid":99,"allowed_syscalls":["SYS_QUERY","SYS_ALLOC"],"resource_quotas":{"gpu":1},"expires_at_tick":0}`,
			`{"pid":99,"allowed_syscalls":["SYS_ALLOC","SYS_QUERY"],"resource_quotas":{"gpu":1},"expires_at_tick":0}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry()
			tt.token = shown(tt.from.pid, tt.token)
			must(t, r, tt.from, tt.typ, tt.data, tt.token)
			if got := string(domaintest.Snapshot(t, r)); got != "["+tt.token+"]" {
				t.Errorf("holds %s, want %s", got, tt.token)
			}
		})
	}
}

func TestGrantReplaces(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	must(t, r, operator, "Capability.GrantDefault", `{"pid":2}`,
		shown(0, `{"pid":2,"allowed_syscalls":[`+ten+`],"resource_quotas":{"cpu":200,"gpu":200}}`))
	less := shown(0, `{"pid":2,"allowed_syscalls":["Memory.Get"],"resource_quotas":{}}`)
	must(t, r, operator, "Capability.Grant", `{"pid":2,"allowed_syscalls":["Memory.Get"]}`, less)
	if got := string(domaintest.Snapshot(t, r)); got != "["+less+"]" {
		t.Errorf("holds %s", got)
	}
}

func TestGrantRefuses(t *testing.T) {
	t.Parallel()
	small := agent(1, "Capability.*", "SYS_QUERY")
	bounded := agent(1, "*")
	bounded.token.Granted.ExpiresAtTick = new(int64(9))
	rich := agent(1, "*")
	rich.token.Granted.ResourceQuotas = map[string]float64{"gpu": 200, "cpu": 199.5}
	tests := []struct {
		name      string
		from      caller
		typ, data string
		class     fault.Kind
		message   string
	}{
		{
			"unknown type", operator, "Capability.Grant", `{"pid":2,"allowed_syscalls":["Memory.Get","Memory.Put"]}`, fault.InvalidInput,
			`Invalid input: allowed_syscalls[1] is "Memory.Put": no syscall has this type or code: Syscall.List names them, Domain.* stands for all of a domain, * for all`,
		},
		{
			"unknown domain", operator, "Capability.Grant", `{"pid":2,"allowed_syscalls":["Disk.*"]}`, fault.InvalidInput,
			`Invalid input: allowed_syscalls[0] is "Disk.*": no syscall begins with Disk.`,
		},
		{
			"unknown resource", operator, "Capability.Grant", `{"pid":2,"allowed_syscalls":[],"resource_quotas":{"gpux":1}}`, fault.InvalidInput,
			"Invalid input: resource_quotas.gpux names no resource: there are cpu, gpu",
		},
		{
			"unknown resource of a default grant", operator, "Capability.GrantDefault", `{"pid":2,"resources":["gpu","gpux"]}`, fault.InvalidInput,
			`Invalid input: resources[1] is "gpux", which names no resource: there are cpu, gpu`,
		},
		{
			"never existed", operator, "Capability.Grant", `{"pid":6,"allowed_syscalls":[]}`, fault.NotFound,
			"no process has pid 6: Process.List lists the processes",
		},
		{
			"never existed, default", operator, "Capability.GrantDefault", `{"pid":6}`, fault.NotFound,
			"no process has pid 6: Process.List lists the processes",
		},
		{
			"has ended", operator, "Capability.Grant", `{"pid":5,"allowed_syscalls":[]}`, fault.Conflict,
			"pid 5 has ended: nothing can be granted to it",
		},
		{
			"has ended, default", operator, "Capability.GrantDefault", `{"pid":5}`, fault.Conflict,
			"pid 5 has ended: nothing can be granted to it",
		},
		{
			"to itself", bounded, "Capability.Grant", `{"pid":1,"allowed_syscalls":[],"expires_at_tick":1}`, fault.Forbidden,
			"pid 1 may not grant to pid 1: it is none of its descendants; the operator may",
		},
		{
			"to its parent", agent(2, "*"), "Capability.Grant", `{"pid":1,"allowed_syscalls":[]}`, fault.Forbidden,
			"pid 2 may not grant to pid 1: it is none of its descendants; the operator may",
		},
		{
			"to a stranger, default", agent(2, "*"), "Capability.GrantDefault", `{"pid":4,"resources":[]}`, fault.Forbidden,
			"pid 2 may not grant to pid 4: it is none of its descendants; the operator may",
		},
		{
			"a syscall that it lacks", small, "Capability.Grant", `{"pid":2,"allowed_syscalls":["SYS_ALLOC"]}`, fault.Forbidden,
			"pid 1 may not grant SYS_ALLOC: it does not hold it itself: grant less, or have the operator grant it",
		},
		{
			"more than its quota", small, "Capability.Grant", `{"pid":2,"allowed_syscalls":[],"resource_quotas":{"gpu":10.5}}`, fault.Forbidden,
			"pid 1 may not grant a quota of 10.5 of gpu: its own is 10: grant less, or have the operator grant it",
		},
		{
			"beyond its expiry", bounded, "Capability.Grant", `{"pid":3,"allowed_syscalls":["*"]}`, fault.Forbidden,
			"pid 1 may not grant beyond tick 9, the last of its own token: set expires_at_tick to that or less",
		},
		{
			"default syscalls that it lacks", small, "Capability.GrantDefault", `{"pid":2}`, fault.Forbidden,
			"pid 1 may not grant Ipc.Receive: it does not hold it itself: grant less, or have the operator grant it",
		},
		{
			"default quotas that it lacks", rich, "Capability.GrantDefault", `{"pid":2}`, fault.Forbidden,
			"pid 1 may not grant a quota of 200 of cpu: its own is 199.5: grant less, or have the operator grant it",
		},
		{
			"default for longer than itself", bounded, "Capability.GrantDefault", `{"pid":2,"resources":[]}`, fault.Forbidden,
			"pid 1 may not grant beyond tick 9, the last of its own token: set expires_at_tick to that or less",
		},
		{
			"kernel grants what nobody knows", operator, "Capability.Endow", `{"pid":99,"allowed_syscalls":["Disk.*"]}`, fault.InvalidInput,
			`Invalid input: allowed_syscalls[0] is "Disk.*": no syscall begins with Disk.`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry()
			for _, pid := range []string{"1", "2", "4"} {
				data := `{"pid":` + pid + `,"allowed_syscalls":["SYS_QUERY"],"resource_quotas":{}}`
				must(t, r, operator, "Capability.Grant", data, shown(0, data))
			}
			refused(t, r, tt.from, tt.typ, tt.data, tt.class, tt.message)
		})
	}
}

// TestDefaultGrantWithinTheGrantersOwn: an agent can grant the default only if it holds as much itself.
func TestDefaultGrantWithinTheGrantersOwn(t *testing.T) {
	t.Parallel()
	rich := agent(1, "*")
	rich.token.Granted.ResourceQuotas = map[string]float64{"gpu": kernel.DefaultQuota}
	must(t, newRegistry(), rich, "Capability.GrantDefault", `{"pid":2,"resources":["gpu"]}`,
		shown(1, `{"pid":2,"allowed_syscalls":[`+ten+`],"resource_quotas":{"gpu":200}}`))
}

func TestDecideKnowsItsOwnSyscallsOnly(t *testing.T) {
	t.Parallel()
	if _, err := newRegistry().Decide(request(t, operator, "Syscall.Ping", `{"payload":1}`)); err == nil {
		t.Error("Decide answers another domain's syscall")
	}
}

// TestApplyRefusesWhatIsNoAnswer: an invalid answer in the journal stops the kernel.
func TestApplyRefusesWhatIsNoAnswer(t *testing.T) {
	t.Parallel()
	call := request(t, operator, "Capability.Grant", `{"pid":2,"allowed_syscalls":[]}`)
	call.Data = []byte(`{"success":true}`)
	defer func() {
		if recover() == nil {
			t.Error("an invalid answer was applied")
		}
	}()
	newRegistry().Apply(call)
}

// TestRefusalsByID: programs decide by the ids of refusals.
func TestRefusalsByID(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	must(t, r, agent(1, "*"), "Capability.Grant", `{"pid":3,"allowed_syscalls":[]}`, shown(1, `{"pid":3,"allowed_syscalls":[],"resource_quotas":{}}`))
	for _, test := range []struct {
		from      caller
		typ, data string
		want      fault.ID
	}{
		{operator, "Capability.Grant", `{"pid":9,"allowed_syscalls":[]}`, fault.ProcessNotFound},
		{operator, "Capability.Revoke", `{"pid":9}`, fault.ProcessNotFound},
		{operator, "Capability.Grant", `{"pid":5,"allowed_syscalls":[]}`, fault.ProcessIsEnded},
		{operator, "Capability.Grant", `{"pid":1,"allowed_syscalls":["No.Such"]}`, fault.WireInvalidInput},
		{agent(2, "*"), "Capability.Grant", `{"pid":1,"allowed_syscalls":[]}`, fault.CapabilityNotYours},
		{agent(2, "*"), "Capability.Grant", `{"pid":3,"allowed_syscalls":[],"mode":"add"}`, fault.CapabilityOtherGranter},
		{agent(2), "Capability.Grant", `{"pid":3,"allowed_syscalls":["Memory.Set"]}`, fault.CapabilityTooMuch},
	} {
		if _, err := run(t, r, test.from, test.typ, test.data); !errors.Is(err, test.want) {
			t.Errorf("%s %s as %d: %v, want %s", test.typ, test.data, test.from.pid, err, test.want)
		}
	}
}

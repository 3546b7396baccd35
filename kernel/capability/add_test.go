package capability_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestAdd: how a grant with mode add changes the earlier one.
func TestAdd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		first, added string // the operator's grants to pid 2, without their braces
		tick         int64
		want         string // of the token
	}{
		{
			"joins", `"allowed_syscalls":["Memory.Get"],"resource_quotas":{"cpu":1,"gpu":2},"http":{"hosts":["a.test"],"plain":true}`,
			`"allowed_syscalls":["Memory.Set","Memory.Get"],"resource_quotas":{"gpu":4},"http":{"hosts":["b.test"],"open":true}`, 0,
			`{"pid":2,"granted_by":0,"allowed_syscalls":["Memory.Get","Memory.Set"],"resource_quotas":{"cpu":1,"gpu":4},"expires_at_tick":null,"http":{"hosts":["a.test","b.test"],"plain":true,"open":true}}`,
		},
		{
			"keeps the expiry", `"allowed_syscalls":["Memory.Get"],"expires_at_tick":9`, `"allowed_syscalls":["Memory.Set"],"expires_at_tick":null`, 0,
			`{"pid":2,"granted_by":0,"allowed_syscalls":["Memory.Get","Memory.Set"],"resource_quotas":{},"expires_at_tick":9}`,
		},
		{
			"sets the expiry", `"allowed_syscalls":["Memory.Get"]`, `"allowed_syscalls":[],"expires_at_tick":5`, 0,
			`{"pid":2,"granted_by":0,"allowed_syscalls":["Memory.Get"],"resource_quotas":{},"expires_at_tick":5}`,
		},
		{
			"renews", `"allowed_syscalls":["Memory.Get"],"expires_at_tick":9`, `"allowed_syscalls":[],"expires_at_tick":20`, 10,
			`{"pid":2,"granted_by":0,"allowed_syscalls":["Memory.Get"],"resource_quotas":{},"expires_at_tick":20}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry()
			if _, err := run(t, r, operator, "Capability.Grant", `{"pid":2,`+tt.first+`}`); err != nil {
				t.Fatal(err)
			}
			must(t, r, caller{tick: tt.tick}, "Capability.Grant", `{"pid":2,"mode":"add",`+tt.added+`}`, tt.want)
		})
	}
	r := newRegistry() // without an earlier grant
	must(t, r, operator, "Capability.Grant", `{"pid":2,"mode":"add","allowed_syscalls":["Memory.Get"]}`, shown(0, `{"pid":2,"allowed_syscalls":["Memory.Get"],"resource_quotas":{}}`))
}

// linked is the token of a process in the registry's own state.
func linked(r *capability.Registry, pid int64) caller {
	r.Publish()
	return caller{pid: pid, token: r.Token(pid)}
}

// TestAddBeside: the operator's addition to an agent's grant is not reduced to what the agent may do; the rest still
// is.
func TestAddBeside(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	must(t, r, operator, "Capability.Grant", `{"pid":1,"allowed_syscalls":["*"],"resource_quotas":{"cpu":5,"gpu":5}}`,
		shown(0, `{"pid":1,"allowed_syscalls":["*"],"resource_quotas":{"cpu":5,"gpu":5}}`))
	must(t, r, linked(r, 1), "Capability.Grant", `{"pid":2,"allowed_syscalls":["Memory.*"],"resource_quotas":{"cpu":1,"gpu":2},"expires_at_tick":7}`,
		shown(1, `{"pid":2,"allowed_syscalls":["Memory.*"],"resource_quotas":{"cpu":1,"gpu":2},"expires_at_tick":7}`))
	const both = `{"pid":2,"granted_by":1,"allowed_syscalls":["Clock.Get","Memory.*"],"resource_quotas":{"cpu":1,"gpu":4},"expires_at_tick":null,"grants":[` +
		`{"granted_by":0,"allowed_syscalls":["Clock.Get"],"resource_quotas":{"gpu":4},"expires_at_tick":null},` +
		`{"granted_by":1,"allowed_syscalls":["Memory.*"],"resource_quotas":{"cpu":1},"expires_at_tick":7}]}`
	must(t, r, operator, "Capability.Grant", `{"pid":2,"mode":"add","allowed_syscalls":["Clock.Get"],"resource_quotas":{"gpu":4}}`, both)
	may := func(typ string) bool {
		row, _ := schema.Lookup(typ)
		return kernel.Authorize(nil, 2, linked(r, 2).token, row, 0) == nil
	}
	if !may("Clock.Get") || !may("Memory.Get") {
		t.Error("not all of both grants is allowed")
	}

	// The agent adds to its own part, and removes none of the operator's.
	must(t, r, linked(r, 1), "Capability.Grant", `{"pid":2,"mode":"add","allowed_syscalls":["SYS_QUERY"],"resource_quotas":{"gpu":3}}`,
		strings.ReplaceAll(both, `"Memory.*"]`, `"Memory.*","SYS_QUERY"]`))
	must(t, r, linked(r, 1), "Capability.Grant", `{"pid":2,"mode":"add","allowed_syscalls":[],"resource_quotas":{"gpu":5}}`,
		`{"pid":2,"granted_by":1,"allowed_syscalls":["Clock.Get","Memory.*","SYS_QUERY"],"resource_quotas":{"cpu":1,"gpu":5},"expires_at_tick":null,"grants":[`+
			`{"granted_by":0,"allowed_syscalls":["Clock.Get"],"resource_quotas":{},"expires_at_tick":null},`+
			`{"granted_by":1,"allowed_syscalls":["Memory.*","SYS_QUERY"],"resource_quotas":{"cpu":1,"gpu":5},"expires_at_tick":7}]}`)

	must(t, r, operator, "Capability.Revoke", `{"pid":1}`, `{"pid":1,"revoked":true}`)
	if !may("Clock.Get") || may("Memory.Get") {
		t.Error("after the agent's token was revoked, its grants are still effective, or the operator's are not")
	}
}

// TestAddToAnothers: a token does not have the grants of two agents.
func TestAddToAnothers(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	must(t, r, operator, "Capability.Grant", `{"pid":1,"allowed_syscalls":["*"]}`, shown(0, `{"pid":1,"allowed_syscalls":["*"],"resource_quotas":{}}`))
	must(t, r, linked(r, 1), "Capability.Grant", `{"pid":2,"allowed_syscalls":["*"]}`, shown(1, `{"pid":2,"allowed_syscalls":["*"],"resource_quotas":{}}`))
	must(t, r, linked(r, 2), "Capability.Grant", `{"pid":3,"allowed_syscalls":["*"]}`, shown(2, `{"pid":3,"allowed_syscalls":["*"],"resource_quotas":{}}`))
	refused(t, r, linked(r, 1), "Capability.Grant", `{"pid":3,"mode":"add","allowed_syscalls":["Memory.Get"]}`, fault.Conflict,
		"pid 1 may not add to what pid 2 granted pid 3: only that process and the operator may; mode replace takes its place")
}

// TestExpiredGrants: no grant is made that has expired already, and adding to one that has expired does not make it eternal.
func TestExpiredGrants(t *testing.T) {
	t.Parallel()
	const (
		passed   = "Invalid input: expires_at_tick must not have passed: it is tick 10"
		required = "Invalid input: expires_at_tick is required: what is added to has expired, and would never expire again: give it (--ttl 1h, --expires-at-tick), or replace the grant"
	)
	r := newRegistry()
	must(t, r, operator, "Capability.Grant", `{"pid":1,"allowed_syscalls":["*"]}`, shown(0, `{"pid":1,"allowed_syscalls":["*"],"resource_quotas":{}}`))
	late := caller{tick: 10}
	for _, mode := range []string{"add", "replace"} {
		refused(t, r, late, "Capability.Grant", `{"pid":1,"mode":"`+mode+`","allowed_syscalls":["Memory.Get"],"expires_at_tick":9}`, fault.InvalidInput, passed)
	}
	must(t, r, linked(r, 1), "Capability.Grant", `{"pid":2,"allowed_syscalls":["Memory.Get"],"expires_at_tick":9}`,
		shown(1, `{"pid":2,"allowed_syscalls":["Memory.Get"],"resource_quotas":{},"expires_at_tick":9}`))
	agent := linked(r, 1)
	agent.tick = 10
	for _, from := range []caller{late, agent} {
		for _, given := range []string{"", `,"expires_at_tick":null`} {
			refused(t, r, from, "Capability.Grant", `{"pid":2,"mode":"add","allowed_syscalls":["Memory.Set"]`+given+`}`, fault.InvalidInput, required)
		}
	}
	must(t, r, late, "Capability.Grant", `{"pid":2,"mode":"add","allowed_syscalls":["Memory.Set"],"expires_at_tick":20}`,
		`{"pid":2,"granted_by":1,"allowed_syscalls":["Memory.Get","Memory.Set"],"resource_quotas":{},"expires_at_tick":20,"grants":[`+
			`{"granted_by":0,"allowed_syscalls":["Memory.Set"],"resource_quotas":{},"expires_at_tick":20},`+
			`{"granted_by":1,"allowed_syscalls":["Memory.Get"],"resource_quotas":{},"expires_at_tick":9}]}`)
	agent.tick, agent.pid = 10, 1
	refused(t, r, agent, "Capability.Grant", `{"pid":2,"mode":"add","allowed_syscalls":["Memory.Set"]}`, fault.InvalidInput, required) // its own part has expired
	must(t, r, late, "Capability.Grant", `{"pid":2,"allowed_syscalls":["Memory.Set"]}`, shown(0, `{"pid":2,"allowed_syscalls":["Memory.Set"],"resource_quotas":{}}`))
}

// TestOldJournal: in a journal without granters, the caller is the granter, and the parent that of a new process.
func TestOldJournal(t *testing.T) {
	t.Parallel()
	r := newRegistry() // 2 is a child of 1
	for _, entry := range []struct {
		from caller
		typ  string
		data string
	}{
		{operator, "Capability.Endow", `{"pid":1,"allowed_syscalls":["*"],"resource_quotas":{}}`},
		{operator, "Capability.Endow", `{"pid":2,"allowed_syscalls":["*"],"resource_quotas":{}}`},
		{agent(2, "*"), "Capability.Grant", `{"pid":3,"allowed_syscalls":["*"],"resource_quotas":{},"expires_at_tick":5}`},
	} {
		call := request(t, entry.from, entry.typ, entry.data)
		call.Data = []byte(entry.data)
		r.Apply(call)
	}
	restored := newRegistry()
	testkit.Must(t, r.Snapshot()(restored.Restore))
	for _, r := range []*capability.Registry{r, restored} {
		for pid, granter := range map[int64]int64{1: 0, 2: 1, 3: 2} {
			got := linked(r, pid).token
			if got.Granted.GrantedBy != granter || (granter != 0) != (got.Granter != nil) {
				t.Errorf("pid %d was granted by %d", pid, got.Granted.GrantedBy)
			}
		}
		kept := r.Token(3)
		if r.Publish(); r.Token(3) != kept {
			t.Error("a token is rebuilt each time it is read")
		}
	}
}

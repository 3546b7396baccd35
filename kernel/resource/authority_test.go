package resource_test

import (
	"testing"

	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestGet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.alloc(2, "gpu", "0.5")
	b.alloc(3, "cpu", "1")
	b.tokens[3].Granted.ResourceQuotas = map[string]float64{"gpu": 1, "ada": 1} // it holds more than its quota
	b.tokens[3].Granted.ExpiresAtTick = new(int64(9))
	const (
		second = `{"pid":2,"granted_by":0,"allowed_syscalls":["*"],"resource_quotas":{"cpu":1,"gpu":5},"expires_at_tick":null,"effective":{"allowed_syscalls":["*"],"resource_quotas":{"cpu":1,"gpu":5},"expires_at_tick":null},"held":{"cpu":0,"gpu":0.5}}`
		third  = `{"pid":3,"granted_by":0,"allowed_syscalls":["*"],"resource_quotas":{"ada":1,"gpu":1},"expires_at_tick":9,"effective":{"allowed_syscalls":["*"],"resource_quotas":{"ada":1,"gpu":1},"expires_at_tick":9},"held":{"ada":0,"cpu":1,"gpu":0}}`
	)
	b.tokens.grant(4, map[string]float64{})
	b.must(2, "Capability.Get", `{}`, second)
	b.must(2, "Capability.Get", `null`, second)
	b.must(2, "Capability.Get", `{"pid":2}`, second)
	b.must(2, "Capability.Get", `{"pid":3}`, third)
	b.must(1, "Capability.Get", `{"pid":3}`, third)
	b.must(0, "Capability.Get", `{"pid":3}`, third)
	b.must(4, "Capability.Get", `{}`, `{"pid":4,"granted_by":0,"allowed_syscalls":["*"],"resource_quotas":{},"expires_at_tick":null,"effective":{"allowed_syscalls":["*"],"resource_quotas":{},"expires_at_tick":null},"held":{}}`)
}

func TestGetRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.refused(0, "Capability.Get", `{}`, fault.NotFound, "pid 0 is the operator: it has no token and needs none; name a pid")
	b.refused(0, "Capability.Get", `{"pid":4}`, fault.NotFound, `pid 4 has no token: grant it one with "pwos cap grant 4 --add SYSCALL..."`)
	for pid, data := range map[int64]string{2: `{"pid":1}`, 3: `{"pid":1}`} {
		b.refused(pid, "Capability.Get", data, fault.Forbidden,
			map[int64]string{2: "pid 2", 3: "pid 3"}[pid]+" may not see what pid 1 may do: it is none of its descendants: ask about yourself, or about a process that descends from you")
	}
	b.refused(1, "Capability.Get", `{"pid":4}`, fault.Forbidden, "pid 1 may not see what pid 4 may do: it is none of its descendants: ask about yourself, or about a process that descends from you")
	b.refused(1, "Capability.Get", `{"pid":0}`, fault.Forbidden, "pid 1 may not see what pid 0 may do: it is none of its descendants: ask about yourself, or about a process that descends from you")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const allowed = `{"allowed":true}`
	no := func(reason string) string { return `{"allowed":false,"reason":"` + reason + `"}` }
	tests := []struct{ data, want string }{
		{`{"pid":0,"syscall":"Syscall.Shutdown"}`, allowed},
		{`{"pid":0,"syscall":"SYS_ALLOC","resource_id":"gpu","amount":5}`, allowed},
		{`{"pid":1,"syscall":"Memory.Set"}`, allowed},
		{`{"pid":1,"syscall":"SYS_SPAWN"}`, allowed},
		{`{"pid":9,"syscall":"Syscall.Ping"}`, allowed},
		{`{"pid":1,"syscall":"Syscall.Shutdown"}`, no("pid 1 may not call Syscall.Shutdown: only the operator may")},
		{`{"pid":9,"syscall":"Memory.Set"}`, no(`pid 9 may not call Memory.Set: no process ever had this pid: \"pwos ps\" lists the processes`)},
		{`{"pid":4,"syscall":"SYS_ALLOC"}`, no(`pid 4 may not call Syscall.Alloc: allow it too with \"pwos cap grant 4 --add Syscall.Alloc\"`)},
		{
			`{"pid":3,"syscall":"Memory.Set"}`,
			no(`pid 3 may not call Memory.Set: its token expired after tick 5, and it is tick 6: allow it again with \"pwos cap grant 3 --add Memory.Set --ttl 1h\"`),
		},

		{`{"pid":1,"syscall":"Syscall.Alloc"}`, allowed},
		{`{"pid":1,"syscall":"Syscall.Alloc","resource_id":"gpu"}`, allowed},
		{`{"pid":1,"syscall":"Syscall.Alloc","resource_id":"gpu","amount":2}`, allowed},
		{
			`{"pid":1,"syscall":"SYS_ALLOC","resource_id":"gpu","amount":2.5}`,
			no(`quota of gpu exceeded: pid 1 may hold 5, holds 3 and asked for 2.5: release some, or allow more with \"pwos cap grant 1 --add --quota gpu=5.5\"`),
		},
		{
			`{"pid":2,"syscall":"Syscall.Alloc","resource_id":"gpu","amount":6}`,
			no("pool gpu is exhausted: 3 of its 8 are held, 5 are free and 6 were requested: request less, or try again once others have released some"),
		},
		{`{"pid":1,"syscall":"SYS_ALLOC","resource_id":"gpux"}`, no(`no resource is named \"gpux\": there are cpu, gpu`)},
		{`{"pid":1,"syscall":"Syscall.Release","resource_id":"gpu","amount":3}`, allowed},
		{
			`{"pid":1,"syscall":"SYS_RELEASE","resource_id":"gpu","amount":4}`,
			no("pid 1 holds 3 of gpu and cannot release 4: release at most what it holds"),
		},
		{`{"pid":1,"syscall":"Syscall.Query","resource_id":"gpu"}`, allowed},
		{`{"pid":1,"syscall":"SYS_QUERY","resource_id":"gpux"}`, no(`no resource is named \"gpux\": there are cpu, gpu`)},
		{`{"pid":1,"syscall":"Memory.Set","resource_id":"gpux","amount":99}`, allowed}, // an amount of none
		{
			`{"pid":4,"syscall":"Syscall.Alloc","resource_id":"gpux"}`, // capability comes before quota
			no(`pid 4 may not call Syscall.Alloc: allow it too with \"pwos cap grant 4 --add Syscall.Alloc\"`),
		},
	}
	for _, tt := range tests {
		t.Run(tt.data, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.alloc(1, "gpu", "3")
			b.tokens.grant(2, map[string]float64{"gpu": 99})
			b.tokens[3].Granted.ExpiresAtTick = new(int64(5))
			b.tick = 6
			before := domaintest.Snapshot(t, b.ledger)
			b.must(0, "Capability.Check", tt.data, tt.want)
			if got := domaintest.Snapshot(t, b.ledger); string(got) != string(before) {
				t.Errorf("a check left %s", got)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(1, "Capability.Check", `{"pid":1,"syscall":"SYS_QUERY"}`, `{"allowed":true}`)
	b.must(1, "Capability.Check", `{"pid":3,"syscall":"SYS_QUERY"}`, `{"allowed":true}`)
	b.refused(3, "Capability.Check", `{"pid":1,"syscall":"SYS_QUERY"}`, fault.Forbidden,
		"pid 3 may not see what pid 1 may do: it is none of its descendants: ask about yourself, or about a process that descends from you")
	b.refused(0, "Capability.Check", `{"pid":1,"syscall":"Memory.Sett"}`, fault.UnknownSyscall, "no syscall Memory.Sett; did you mean Memory.Set?")
	for _, name := range []string{"Rocket.Launch", "SYS_NOTHING", "Memory.*", "*", "Resource.Free"} {
		b.refused(0, "Capability.Check", `{"pid":1,"syscall":"`+name+`"}`, fault.UnknownSyscall,
			`no syscall has the type or code "`+name+`": Syscall.List names them all`)
	}
	b.refused(0, "Capability.Check", `{"pid":1,"syscall":"SYS_ALLOC","amount":1}`, fault.InvalidInput,
		"Invalid input: resource_id is missing: amount is of a resource")
}

// TestUnborn: a spawn that failed half-way has left a token for a pid that no process ever had. It allows nothing, and
// is not shown.
func TestUnborn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.tokens.grant(9, map[string]float64{"gpu": 1})
	const why = `no process ever had this pid: \"pwos ps\" lists the processes`
	b.must(0, "Capability.Check", `{"pid":9,"syscall":"Memory.Set"}`, `{"allowed":false,"reason":"pid 9 may not call Memory.Set: `+why+`"}`)
	b.refused(0, "Capability.Get", `{"pid":9}`, fault.NotFound, `pid 9 has no token: no process ever had this pid: "pwos ps" lists the processes`)
}

// TestGetBelow: the effective part of a token, and the holdings by its grants.
func TestGetBelow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.tokens[2].Granted.GrantedBy, b.tokens[2].Granted.ResourceQuotas = 1, map[string]float64{"gpu": 4}
	b.alloc(2, "gpu", "1.5")
	b.tokens[1].Granted.ResourceQuotas["gpu"] = 2
	b.tokens[1].Granted.AllowedSyscalls = []string{"SYS_ALLOC"}
	b.must(0, "Capability.Get", `{"pid":2}`,
		`{"pid":2,"granted_by":1,"allowed_syscalls":["*"],"resource_quotas":{"gpu":4},"expires_at_tick":null,`+
			`"effective":{"allowed_syscalls":["SYS_ALLOC"],"resource_quotas":{"gpu":2},"expires_at_tick":null},"held":{"gpu":1.5}}`)
	b.must(0, "Capability.Get", `{"pid":1}`,
		`{"pid":1,"granted_by":0,"allowed_syscalls":["SYS_ALLOC"],"resource_quotas":{"cpu":1,"gpu":2},"expires_at_tick":null,`+
			`"effective":{"allowed_syscalls":["SYS_ALLOC"],"resource_quotas":{"cpu":1,"gpu":2},"expires_at_tick":null},`+
			`"held":{"cpu":0,"gpu":0},"held_below":{"gpu":1.5}}`)
}

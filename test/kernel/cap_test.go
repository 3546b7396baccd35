package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// capRow is one of the ten syscalls of CAP 1, called as process $P, whose child is $C.
type capRow struct {
	typ, code  string
	first      string // the call of the same type's counterpart that must come first, if any
	data, want string // want is part of the reply's data
}

func capRows() []capRow {
	return []capRow{
		{
			typ: "Syscall.Alloc", code: "SYS_ALLOC", first: "Syscall.Alloc",
			data: `{"pid":$P,"resource_id":"gpu","amount":1}`, want: `"amount":1,"reserved":2.5`,
		},
		{
			typ: "Syscall.Release", code: "SYS_RELEASE", first: "Syscall.Alloc",
			data: `{"pid":$P,"resource_id":"gpu","amount":1.5}`, want: `{"resource_id":"gpu","amount":1.5}`,
		},
		{
			typ: "Syscall.Query", code: "SYS_QUERY", first: "Syscall.Alloc",
			data: `{"pid":$P,"resource_id":"gpu"}`, want: `{"available":6.5,"capacity":8,"utilization":0.1875}`,
		},
		{typ: "Syscall.Spawn", code: "SYS_SPAWN", data: `{"pid":$P,"child_agent_id":"scout","intent":"look","role":"eyes"}`, want: `/scout"`},
		{typ: "Syscall.Terminate", code: "SYS_TERMINATE", data: `{"pid":$P,"target_pid":$C}`, want: `{"target_pid":$C}`},
		{typ: "Syscall.CommitDelta", code: "SYS_COMMIT_DELTA", data: `{"pid":$P,"changes":{"mood":"calm"}}`, want: `{"agent_id":"agent","delta_seq":1}`},
		{typ: "Syscall.Rollback", code: "SYS_ROLLBACK", first: "Syscall.CommitDelta", data: `{"pid":$P,"to_tick":0}`, want: `"rolled_back_to":0`},
		{typ: "Syscall.SendMsg", code: "SYS_SEND_MSG", data: `{"pid":$P,"receiver_pid":$C,"payload":"hi"}`, want: `{"receiver_pid":$C,"status":"DELIVERED","msg_id":1}`},
		{
			typ: "Syscall.Checkpoint", code: "SYS_CHECKPOINT", first: "Syscall.CommitDelta",
			data: `{"pid":$P}`, want: `{"total_deltas":1,"checkpoint_id":1}`,
		},
		{typ: "Syscall.GetState", code: "SYS_GET_STATE", data: `{"pid":$P}`, want: `"pid":$P,"agent_id":"agent"`},
	}
}

// TestCAP calls each of the ten syscalls without a capability, with one that lacks it, with an expired one, and with one
// that has it: each answer is right, recorded, and counted (CAP, Test Coverage).
func TestCAP(t *testing.T) {
	t.Parallel()
	for _, row := range capRows() {
		t.Run(row.code, func(t *testing.T) {
			t.Parallel()
			want := schema.KindCommand
			if row.code == "SYS_QUERY" || row.code == "SYS_GET_STATE" {
				want = schema.KindQuery
			}
			if r, _ := schema.Lookup(row.typ); r.Kind != want {
				t.Errorf("%s is a %v, want a %v", row.typ, r.Kind, want)
			}
			c := start(t).dial(t)
			parent := c.spawn(0, `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":4}}`)
			child := c.spawn(parent, `{"allowed_syscalls":["*"]}`)
			fill := strings.NewReplacer("$P", fmt.Sprint(parent), "$C", fmt.Sprint(child)).Replace
			if row.first != "" {
				first := `{"pid":$P,"changes":{"mood":"calm"}}`
				if row.first == "Syscall.Alloc" {
					first = `{"pid":$P,"resource_id":"gpu","amount":1.5}`
				}
				c.call(row.first, fill(first), nil)
			}
			data := fill(row.data)
			denial := fmt.Sprintf(`pid %d may not call %s: allow it too with "pwos cap grant %d --add %s"`, parent, row.typ, parent, row.typ)
			base := c.metrics().ByCode[row.code]

			c.call("Capability.Revoke", fill(`{"pid":$P}`), nil)
			if got := c.denied(row, parent, data); got != denial {
				t.Errorf("without a token: %q, want %q", got, denial)
			}
			c.call("Capability.Grant", fill(`{"pid":$P,"allowed_syscalls":["Memory.*"]}`), nil)
			if got := c.denied(row, parent, data); got != denial {
				t.Errorf("with another token: %q, want %q", got, denial)
			}
			c.call("Capability.Grant", fill(`{"pid":$P,"allowed_syscalls":["*"],"expires_at_tick":3}`), nil)
			c.call("Clock.Advance", `{"ticks":4}`, nil)
			if got := c.denied(row, parent, data); !strings.Contains(got, "expired") || !strings.Contains(got, "pwos cap grant") {
				t.Errorf("with an expired token: %q", got)
			}

			c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":[%q],"resource_quotas":{"gpu":4}}`, parent, row.code), nil)
			a := c.call(row.typ, data, nil)
			if want := fill(row.want); !strings.Contains(string(a.Data), want) {
				t.Errorf("got %s, want %s", a.Data, want)
			}
			c.recorded(row, a, parent, "")

			m := c.metrics()
			if got := m.ByCode[row.code] - base; got != 4 {
				t.Errorf("by_code counts %d calls, want 4", got)
			}
			if m.DeniedByCode[row.code] != 3 || m.DeniedCalls != 3 {
				t.Errorf("denied: %d of it, %d in all, want 3", m.DeniedByCode[row.code], m.DeniedCalls)
			}
			if q := m.Latency[row.typ]; q.P50 < 1 || q.P99 < q.P50 || m.Avg <= 0 {
				t.Errorf("latency: %+v, average %v", q, m.Avg)
			}
		})
	}
}

// denied makes a call that authority refuses, finds it in the audit log, and returns its message.
func (c *client) denied(row capRow, pid int64, data string) string {
	c.t.Helper()
	a := c.ask(row.typ, data)
	f := c.fault(a)
	if f.Code != 403 {
		c.t.Fatalf("%s: got %s, want 403", row.typ, a.Data)
	}
	c.recorded(row, a, pid, f.Message)
	return f.Message
}

package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestPayloadOfARecord makes each of the ten calls, once correctly and once so that it fails. The record has the result of
// a command, the request of a query, and the message of a failure (CAP 4).
func TestPayloadOfARecord(t *testing.T) {
	t.Parallel()
	for _, row := range capRows() {
		t.Run(row.code, func(t *testing.T) {
			t.Parallel()
			c := start(t).dial(t)
			parent := c.spawn(0, `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":4}}`)
			child := c.spawn(parent, `{"allowed_syscalls":["*"]}`)
			fill := strings.NewReplacer("$P", fmt.Sprint(parent), "$C", fmt.Sprint(child)).Replace
			if row.first == "Syscall.Alloc" {
				c.call(row.first, fill(`{"pid":$P,"resource_id":"gpu","amount":1.5}`), nil)
			}
			good := c.call(row.typ, fill(row.data), nil)
			want := string(good.Data)
			if r, _ := schema.Lookup(row.typ); r.Kind == schema.KindQuery {
				want = "null"
			}
			bad := c.ask(row.typ, strings.Replace(fill(row.data), fmt.Sprintf(`"pid":%d`, parent), `"pid":99`, 1))
			for _, e := range []struct {
				answer  answer
				payload string
				success bool
				message string
			}{{good, want, true, ""}, {bad, "null", false, c.fault(bad).Message}} {
				var log struct {
					Entries []struct {
						Success bool            `json:"success"`
						Payload json.RawMessage `json:"payload"`
						Error   *string         `json:"error"`
					} `json:"entries"`
				}
				c.call("Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":1}`, e.answer.Metadata.Kernel.Seq-1), &log)
				if got := log.Entries[0]; got.Success != e.success || string(got.Payload) != e.payload || (got.Error == nil) != e.success || !e.success && *got.Error != e.message {
					t.Errorf("recorded %v, %s, %v; want %v, %s, %q", got.Success, got.Payload, got.Error, e.success, e.payload, e.message)
				}
				var raw struct {
					Entries []map[string]json.RawMessage `json:"entries"`
				}
				c.call("Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":1}`, e.answer.Metadata.Kernel.Seq-1), &raw)
				for _, member := range []string{"success", "syscall_code", "pid", "tick", "payload", "error", "latency_us", "seq", "type", "time", "id", "correlation", "causation"} {
					if _, ok := raw.Entries[0][member]; !ok {
						t.Errorf("%s is missing: %v", member, raw.Entries[0])
					}
				}
			}
		})
	}
}

// TestMetricsAddUp compares counts: the total is the number of entries in the log, each code has the number of calls made,
// and the mean is that of the log (CAP 6).
func TestMetricsAddUp(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	pid := c.spawn(0, `{"allowed_syscalls":["SYS_ALLOC"],"resource_quotas":{"gpu":2}}`)
	before := c.metrics()
	for _, call := range []struct {
		typ, data string
		code      int
	}{
		{"Syscall.Alloc", `{"pid":%d,"resource_id":"gpu","amount":2}`, 0},
		{"Syscall.Alloc", `{"pid":%d,"resource_id":"gpu","amount":1}`, 429}, // a denial by quota
		{"Syscall.Alloc", `{"pid":%d,"resource_id":"cake","amount":1}`, 404},
		{"Memory.Get", `{"pid":%d,"key":"a"}`, 403}, // and one by capability
		{"Syscall.GetState", `{"pid":%d}`, 403},
	} {
		a, code := c.ask(call.typ, fmt.Sprintf(call.data, pid)), 0
		if a.Kind == "error" {
			code = c.fault(a).Code
		}
		if code != call.code {
			t.Fatalf("%s: %s, want %d", call.typ, a.Data, call.code)
		}
	}
	a := c.ask("Audit.Metrics", `{}`)
	var m metrics
	testkit.Must(t, json.Unmarshal(a.Data, &m))
	sum := func(counts map[string]int64) (n int64) {
		for _, count := range counts {
			n += count
		}
		return n
	}
	last := a.Metadata.Kernel.Seq - 1
	if m.TotalCalls != sum(m.ByCode) || m.TotalCalls-before.TotalCalls < 6 {
		t.Errorf("total %d, by code %v, before %d", m.TotalCalls, m.ByCode, before.TotalCalls)
	}
	if m.DeniedCalls != 3 || sum(m.DeniedByCode) != 3 || m.DeniedByCode["SYS_ALLOC"] != 1 || m.DeniedByCode["Memory.Get"] != 1 || m.DeniedByCode["SYS_GET_STATE"] != 1 {
		t.Errorf("denied %d: %v", m.DeniedCalls, m.DeniedByCode)
	}
	if m.ByCode["SYS_ALLOC"] != 3 || m.ByCode["SYS_GET_STATE"] != 1 {
		t.Errorf("by code: %v", m.ByCode)
	}
	var latency, entries, calls int64
	for entries < last {
		var log struct {
			Entries []entry `json:"entries"`
		}
		c.call("Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":%d}`, entries, min(5, last-entries)), &log)
		for _, e := range log.Entries {
			entries++
			if e.LatencyUS < 1 || e.Seq != entries {
				t.Errorf("entry %d took %d µs, want number %d", e.Seq, e.LatencyUS, entries)
			}
			if row, _ := schema.Lookup(e.Type); !row.Internal { // the kernel's own commands are not calls
				calls++
				latency += e.LatencyUS
			}
		}
	}
	if calls != m.TotalCalls || calls == entries {
		t.Errorf("%d calls are counted; of %d entries %d are of calls", m.TotalCalls, entries, calls)
	}
	if mean := float64(latency) / float64(calls); m.Avg < mean-0.001 || m.Avg > mean+0.001 {
		t.Errorf("mean %v, of %d calls %v", m.Avg, calls, mean)
	}
}

// TestTokenForms grants in each form of allowed_syscalls: what it names is allowed, other calls are not (CAP 2).
func TestTokenForms(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	pid := c.spawn(0, `{"allowed_syscalls":["*"]}`)
	for form, allowed := range map[string]string{
		"SYS_QUERY": "Syscall.Query", "Syscall.Query": "Syscall.Query", "Memory.List": "Memory.List",
		"Memory.*": "Memory.Get Memory.List", "*": "Memory.Get Memory.List Process.List Syscall.Query",
		"Syscall.*": "Syscall.Query", "Process.*": "Process.List",
	} {
		c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":[%q]}`, pid, form), nil)
		var passed []string
		for _, typ := range []string{"Memory.Get", "Memory.List", "Process.List", "Syscall.Query"} {
			var out struct {
				Allowed bool `json:"allowed"`
			}
			if c.call("Capability.Check", fmt.Sprintf(`{"pid":%d,"syscall":%q}`, pid, typ), &out); out.Allowed {
				passed = append(passed, typ)
			}
		}
		if got := strings.Join(passed, " "); got != allowed {
			t.Errorf("%s lets through %q, want %q", form, got, allowed)
		}
	}
}

// TestCallersTick: a process whose token has expired names an earlier tick, but the kernel's tick counts.
func TestCallersTick(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	pid := c.spawn(0, `{"allowed_syscalls":["*"],"expires_at_tick":3}`)
	ask := func(tick int) string { return fmt.Sprintf(`{"pid":%d,"tick":%d,"resource_id":"gpu"}`, pid, tick) }
	c.call("Syscall.Query", ask(3), nil) // the last tick at which it is valid
	c.call("Clock.Advance", `{"ticks":1}`, nil)
	c.refused(403, "Syscall.Query", ask(0), "expired after tick 3", "it is tick 4")
	c.refused(403, "Syscall.Query", ask(3), "expired after tick 3", "it is tick 4")
}

// TestCheckpointChangesNoMemory compares an agent's memory before and after.
func TestCheckpointChangesNoMemory(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	c.world()
	before := string(c.call("Syscall.GetState", `{"pid":1}`, nil).Data)
	a := c.call("Syscall.Checkpoint", `{"pid":1}`, nil)
	if after := string(c.call("Syscall.GetState", `{"pid":1}`, nil).Data); after != before || !strings.Contains(string(a.Data), `"total_deltas":1`) {
		t.Errorf("checkpoint %s; state %s, before %s", a.Data, after, before)
	}
}

// TestDescriptor reads the members for a scheduler, and the rest of a descriptor, of a living process and of one that has
// ended.
func TestDescriptor(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	parent := c.spawn(0, `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":4}}`)
	c.call("Clock.Advance", `{"ticks":2}`, nil)
	c.call("Syscall.Spawn", fmt.Sprintf(`{"pid":%d,"child_agent_id":"scout","intent":"look","role":"eyes","priority":"HIGH",`+
		`"capabilities":{"allowed_syscalls":["*"],"resource_quotas":{"gpu":1}}}`, parent), nil)
	living := fmt.Sprintf(`{"pid":2,"agent_id":%q,"parent_pid":%d,"state":"READY","priority":"HIGH","intent":"look","role":"eyes",`+
		`"resource_quota":{"gpu":1},"birth_tick":2,"origin":"https://pwos.local/"}`, c.name(parent)+"/scout", parent)
	if a := c.call("Syscall.GetState", `{"pid":2}`, nil); string(a.Data) != living {
		t.Errorf("got %s, want %s", a.Data, living)
	}
	c.call("Clock.Advance", `{"ticks":3}`, nil)
	c.call("Syscall.Terminate", `{"target_pid":2}`, nil)
	ended := strings.NewReplacer(`READY`, `TERMINATED`, `"birth_tick":2`, `"birth_tick":2,"exit_tick":5`).Replace(living)
	if a := c.call("Syscall.GetState", `{"target_pid":2}`, nil); string(a.Data) != ended {
		t.Errorf("got %s, want %s", a.Data, ended)
	}
}

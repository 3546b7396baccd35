package kernel_test

import (
	"fmt"
	"testing"
)

// holdings is the answer of Capability.Get.
type holdings struct {
	Allowed []string           `json:"allowed_syscalls"`
	Quotas  map[string]float64 `json:"resource_quotas"`
	Expires *int64             `json:"expires_at_tick"`
	Held    map[string]float64 `json:"held"`
}

func (c *client) holdings(pid int64) (h holdings) {
	c.t.Helper()
	c.call("Capability.Get", fmt.Sprintf(`{"pid":%d}`, pid), &h)
	return h
}

func (c *client) available(resource string) float64 {
	c.t.Helper()
	var out struct {
		Available float64 `json:"available"`
	}
	c.call("Syscall.Query", fmt.Sprintf(`{"resource_id":%q}`, resource), &out)
	return out.Available
}

// TestQuota requests more than a quota and more than the pool has: the answer has both numbers, and nothing changes.
func TestQuota(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	pid := c.spawn(0, `{"allowed_syscalls":["SYS_ALLOC","SYS_RELEASE"],"resource_quotas":{"gpu":4}}`)
	greedy := c.spawn(0, `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":100}}`)
	alloc := func(pid int64, amount float64) string {
		return fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":%v}`, pid, amount)
	}
	c.call("Syscall.Alloc", alloc(pid, 3), nil)
	c.refused(429, "Syscall.Alloc", alloc(pid, 2), "gpu", "may hold 4", "holds 3", "asked for 2")
	c.refused(507, "Syscall.Alloc", alloc(greedy, 6), "gpu", "exhausted", "5 are free", "6 were requested")
	if got := c.available("gpu"); got != 5 {
		t.Errorf("%v available after two refusals, want 5", got)
	}
	c.refused(409, "Syscall.Release", alloc(pid, 4), "holds 3")
	c.refused(404, "Syscall.Alloc", `{"resource_id":"cake","amount":1}`, "cake")
	c.refused(422, "Syscall.Alloc", `{"resource_id":"gpu","amount":-1}`, "amount")
	c.refused(422, "Syscall.Alloc", `{"resource_id":"gpu","amount":1e999}`, "amount")
	c.call("Syscall.Release", alloc(pid, 3), nil)
	if got := c.holdings(pid).Held["gpu"]; got != 0 {
		t.Errorf("holds %v after releasing all", got)
	}
}

// TestRegistry grants, shows, checks, and revokes, individually and all that have expired (CAP 3).
func TestRegistry(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	a, b := c.spawn(0, `{"allowed_syscalls":["Memory.*"]}`), c.spawn(0, `{"allowed_syscalls":["*"]}`)
	check := func(pid int64, syscall string) (out struct {
		Allowed bool   `json:"allowed"`
		Reason  string `json:"reason"`
	},
	) {
		c.call("Capability.Check", fmt.Sprintf(`{"pid":%d,"syscall":%q}`, pid, syscall), &out)
		return out
	}
	if got := check(a, "Memory.Set"); !got.Allowed || got.Reason != "" {
		t.Errorf("check of what is granted: %+v", got)
	}
	denial := fmt.Sprintf(`pid %d may not call Syscall.Alloc: allow it too with "pwos cap grant %d --add Syscall.Alloc"`, a, a)
	if got := check(a, "SYS_ALLOC"); got.Allowed || got.Reason != denial {
		t.Errorf("check of what is not: %+v, want %q", got, denial)
	}

	c.call("Capability.GrantDefault", fmt.Sprintf(`{"pid":%d}`, a), nil)
	if h := c.holdings(a); len(h.Allowed) != 11 || h.Quotas["gpu"] != 200 || h.Quotas["ram"] != 200 {
		t.Errorf("default grant: %+v", h)
	}
	if check(a, "Memory.Set").Allowed {
		t.Error("a grant did not replace the earlier one")
	}

	d := c.spawn(0, `{"allowed_syscalls":["*"]}`)
	for i, pid := range []int64{a, b, d} {
		c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["*"],"expires_at_tick":%d}`, pid, 10*min(i+1, 2)), nil)
	}
	var out struct {
		Revoked []int64 `json:"revoked"`
	}
	for _, step := range []struct {
		to   int64
		want string
	}{{10, "[]"}, {11, fmt.Sprint([]int64{a})}, {30, fmt.Sprint([]int64{b, d})}, {30, "[]"}} {
		c.call("Syscall.Query", fmt.Sprintf(`{"resource_id":"gpu","tick":%d}`, step.to), nil)
		c.call("Capability.RevokeExpired", `{}`, &out)
		if got := fmt.Sprint(out.Revoked); got != step.want {
			t.Errorf("tick %d: revoked %s, want %s", step.to, got, step.want)
		}
	}
	var gone struct {
		Revoked bool `json:"revoked"`
	}
	if c.call("Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, a), &gone); gone.Revoked {
		t.Error("a second revocation reports a revoked token")
	}
	c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["*"]}`, a), nil)
	if c.call("Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, a), &gone); !gone.Revoked || check(a, "Memory.Set").Allowed {
		t.Error("a revoked token still allows what it allowed")
	}
}

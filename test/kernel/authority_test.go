package kernel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestAuthorityFlowsDownAndBack: four children of a parent with two units have two in total, and when the parent's token is
// reduced, revoked or expires, the grants from it become invalid, immediately and after a restart.
func TestAuthorityFlowsDownAndBack(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	const all = `{"allowed_syscalls":["Memory.*","SYS_ALLOC","SYS_RELEASE","SYS_SPAWN"],"resource_quotas":{"gpu":2}}`
	parent := c.spawn(0, all)
	held := 0
	var children []int64
	for range 4 {
		child := c.spawn(parent, all)
		children = append(children, child)
		if a := c.ask("Syscall.Alloc", fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":2}`, child)); a.Kind == "reply" {
			held += 2
		}
		c.call("Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"k","value":1}`, child), nil)
	}
	if held != 2 {
		t.Errorf("children of a parent that may hold 2 hold %d", held)
	}
	c.refused(429, "Syscall.Alloc", fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":1}`, children[1]), "quota of gpu", "may hold 2", "2 more held by its grants", "asked for 1")

	set := func(code int, words ...string) {
		t.Helper()
		for _, child := range children {
			data := fmt.Sprintf(`{"pid":%d,"key":"k","value":2}`, child)
			if code == 0 {
				c.call("Memory.Set", data, nil)
			} else {
				c.refused(code, "Memory.Set", data, words...)
			}
		}
	}
	advice := fmt.Sprintf(`pid %d, which granted it, may not do so itself: allow it too with "pwos cap grant %d --add Memory.Set"`, parent, parent)
	c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Memory.Get"]}`, parent), nil)
	set(403, advice)
	c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Memory.Set"],"mode":"add","expires_at_tick":5}`, parent), nil)
	set(0)
	c.call("Clock.Advance", `{"ticks":6}`, nil)
	set(403, "expired after tick 5, and it is tick 6: allow it again")
	c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,%s`, parent, all[1:]), nil)
	set(0)
	c.call("Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, parent), nil)
	set(403, advice)
	d.restart(t)
	c = d.dial(t)
	set(403, advice)
	c.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Memory.Set"],"mode":"add"}`, parent), nil)
	set(0)
}

// TestEndedWhileWaiting: an agent that ends while it waits for mail gets an error, in both dialects, and so do its later
// calls; none of them counts as a denial.
func TestEndedWhileWaiting(t *testing.T) {
	t.Parallel()
	d := start(t)
	c, waiting := d.dial(t), d.dial(t)
	pid := c.spawn(0, messenger)
	waiting.send("Ipc.Receive", fmt.Sprintf(`{"pid":%d,"wait_ms":60000}`, pid), "")
	c.call("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, pid), nil)
	if f := waiting.fault(waiting.next()); f.Code != 410 || !strings.Contains(f.Message, "has ended") {
		t.Errorf("an agent that ended while it waited gets %+v", f)
	}
	for _, call := range []string{"Ipc.Receive", "Memory.List"} {
		c.refused(410, call, fmt.Sprintf(`{"pid":%d}`, pid), "has ended")
	}
	legacy := d.dialOn(t, "events.sock")
	legacy.write(fmt.Sprintf(`{"type":"command","name":"Ipc.Receive","payload":{"pid":%d},"metadata":{"id":"1","timestamp":1}}`, pid) + "\n")
	if a := legacy.next(); !strings.Contains(string(a.Payload), `"code":"CONFLICT"`) {
		t.Errorf("OsEvent: %s", a.Payload)
	}
	var metrics struct {
		Denied int `json:"denied_calls"`
	}
	if a := c.call("Audit.Metrics", `{}`, &metrics); metrics.Denied != 0 {
		t.Errorf("counted as denials: %s", a.Data)
	}
}

// TestCallPattern: a token that names user-space syscalls allows only these.
func TestCallPattern(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"mcp/fs/read", "mcp/net/get", "other"} {
		path := filepath.Join(root, name)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Must(t, os.WriteFile(path, []byte(module()), 0o644))
	}
	c := start(t, func(cfg *config.Config) { cfg.Root = root }).dial(t)
	some, all := c.spawn(0, `{"allowed_syscalls":["Call:mcp/fs/*"]}`), c.spawn(0, `{"allowed_syscalls":["Syscall.Call"]}`)
	call := func(pid int64, name string) string { return fmt.Sprintf(`{"pid":%d,"syscall":%q}`, pid, name) }
	for _, name := range []string{"mcp/fs/read", "os/mcp/fs/read", "os:///mcp/fs/read", "./mcp/fs/read", "mcp/net/../fs/read"} {
		if a := c.ask("Syscall.Call", call(some, name)); a.Kind != "reply" {
			t.Errorf("%s: %s", name, a.Data)
		}
	}
	for _, name := range []string{"mcp/net/get", "os/other", "./other", "mcp/fs/../net/get"} {
		c.refused(403, "Syscall.Call", call(some, name), fmt.Sprintf(`"pwos cap grant %d --add Call:`, some))
		if a := c.ask("Syscall.Call", call(all, name)); a.Kind != "reply" {
			t.Errorf("%s: %s", name, a.Data)
		}
	}
	c.refused(403, "Syscall.Call", fmt.Sprintf(`{"pid":%d,"syscall":"memory","args":["get","k"]}`, some), "may not call Memory.Get")
}

package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestVerdictsOnTools shows that a tool call that is refused or fails has that outcome in the log, on the caller's row, and
// in the metrics, also after a kill.
func TestVerdictsOnTools(t *testing.T) {
	t.Parallel()
	p := newTree(t, "", map[string]string{"prog": "#!/bin/sh\necho 1\n", "text": "no tool"})
	testkit.Must(t, os.Chmod(p.Path("root/prog"), 0o700))
	d := p.start(t)
	c := p.dial(t)
	var child struct {
		PID int64 `json:"child_pid"`
	}
	testkit.Must(t, json.Unmarshal([]byte(c.call("Syscall.Spawn", `{"child_agent_id":"a","capabilities":{"allowed_syscalls":["Syscall.Call"]}}`)), &child))
	for path, code := range map[string]int{"os/prog": 403, "os/none": 404, "os/text": 422} {
		c.refused(code, "", "Syscall.Call", fmt.Sprintf(`{"pid":%d,"syscall":%q}`, child.PID, path))
	}
	check := func() {
		t.Helper()
		var log struct {
			Entries []struct {
				Type, Status string
				Success      bool
				PID, Code    int64
			}
		}
		testkit.Must(t, json.Unmarshal([]byte(c.call("Audit.Log", fmt.Sprintf(`{"pid":%d}`, child.PID))), &log))
		verdicts := map[string]int{}
		for _, e := range log.Entries {
			if e.Type != "Syscall.Call" || e.PID != child.PID || e.Success {
				t.Errorf("row %+v", e)
			}
			verdicts[fmt.Sprint(e.Status, " ", e.Code)]++
		}
		if fmt.Sprint(verdicts) != "map[denied 403:1 failed 404:1 failed 422:1]" {
			t.Errorf("the log says %v", verdicts)
		}
		var m struct {
			ByCode       map[string]int `json:"by_code"`
			DeniedByCode map[string]int `json:"denied_by_code"`
		}
		testkit.Must(t, json.Unmarshal([]byte(c.call("Audit.Metrics", `{}`)), &m))
		if m.ByCode["Syscall.Call"] != 3 || m.DeniedByCode["Syscall.Call"] != 1 || m.ByCode["Syscall.Called"] != 0 {
			t.Errorf("counted %+v", m)
		}
	}
	check()
	d.Kill(t)
	p.start(t)
	c = p.dial(t)
	check()
}

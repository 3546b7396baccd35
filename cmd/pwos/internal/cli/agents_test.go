package cli_test

import (
	"testing"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// TestPIDNamed: a name is that of the agent that lives, else of the last that ended; what could be two names both.
func TestPIDNamed(t *testing.T) {
	t.Parallel()
	var processes []view.Process
	for _, p := range []schema.Descriptor{
		{PID: 1, AgentID: "claude", State: view.Terminated},
		{PID: 2, AgentID: "claude", State: "RUNNING"},
		{PID: 3, AgentID: "claude", State: view.Terminated},
		{PID: 4, AgentID: "gone", State: view.Terminated},
		{PID: 5, AgentID: "gone", State: view.Terminated},
		{PID: 6, AgentID: "planner", State: "READY", Origin: "https://a.local/"},
		{PID: 7, AgentID: "planner", State: "READY", Origin: "https://b.local/"},
		{PID: 8, AgentID: "claude/writer", State: "READY"},
		{PID: 9, AgentID: "claude/writer/editor", State: "READY"},
		{PID: 10, AgentID: "gone/editor", State: view.Terminated},
		{PID: 11, AgentID: "it's", State: "READY"},
	} {
		processes = append(processes, view.Process{Descriptor: p})
	}
	for name, want := range map[string]int64{"claude": 2, "gone": 5, "claude/writer": 8, "it's": 11} {
		if got, err := cli.PIDNamed(processes, name); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"planner": `several agents have this name, "planner": pid 6 (https://a.local/) and pid 7 (https://b.local/); give the PID`,
		"cluade":  `no agent has the name "cluade"; did you mean claude?`,
		"writer":  `no agent has the name "writer"; did you mean claude/writer?`,
		"editor":  `no agent has the name "editor"; did you mean claude/writer/editor?`,
		"its":     `no agent has the name "its"; did you mean 'it'\''s'?`,
		"nobody":  `no agent has the name "nobody": "pwos ps --all" lists the agents`,
	} {
		got, err := cli.PIDNamed(processes, name)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %d, %v, want %s", name, got, err, want)
		}
	}
}

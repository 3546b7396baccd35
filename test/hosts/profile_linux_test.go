package hosts_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/screen"
)

// TestProfileCoder: a host under the profile that ships for it works in its directory, with its tools, the kernel's and the key that the
// kernel holds, and has nothing else.
func TestProfileCoder(t *testing.T) {
	t.Parallel()
	for _, h := range allHosted() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			must(t, os.WriteFile(p.path("outside"), []byte("a secret\n"), 0o600))
			m := newModel(
				t,
				step{tool: "Memory_Set", input: object{"key": "notes/1", "value": 1}},
				shell(h.name, "echo made >made && cat made"),
				shell(h.name, "cat "+p.path("outside")+"; echo x >"+p.path("new")),
				shell(h.name, "curl -sS --max-time 20 https://example.com/"),
			)
			p.hold(h, m)
			args := append([]string{"run", "--tty", "--env", "ENABLE_TOOL_SEARCH", "--profile", "coder", "--", h.name}, h.once...)
			s := screen.Sit(t, p.command(t.Context(), "pwos", args...), patience/3)
			if got := s.Status(); got != 0 {
				t.Errorf("exit status %d", got)
			}
			m.expect(h.key, "success", "made", "No such file", "response 403")
			for i, result := range m.results {
				if strings.Contains(result, "a secret") || strings.Contains(result, canary) || strings.Contains(result, "Example Domain") {
					t.Errorf("%d: %s gave %s", i, m.steps[i].tool, result)
				}
			}
			if _, err := os.Stat(p.path("new")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it has written outside: %v", err)
			}
			if log := p.run("pwos", "call", "Process.List"); !strings.Contains(log, `"intent":"profile:coder"`) {
				t.Errorf("processes: %s", log)
			}
		})
	}
}

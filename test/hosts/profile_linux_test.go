package hosts_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/screen"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestProfiles: a host under each of the shipped profiles works in its directory as the profile says, with its tools, the
// kernel's tools and the key that the kernel has, and can access nothing else.
func TestProfiles(t *testing.T) {
	t.Parallel()
	for profile, writes := range map[string]bool{"reader": false, "worker": true, "coder": true} {
		for _, h := range allHosted() {
			t.Run(profile+"/"+h.name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				testkit.Must(t, os.WriteFile(p.Path("outside"), []byte("a secret\n"), 0o600))
				m := newModel(
					t,
					step{tool: "Memory_List", input: object{}},
					shell(h.name, "echo made >made && cat made; echo $((6 * 7))"),
					shell(h.name, "cat "+p.Path("outside")+"; echo x >"+p.Path("new")),
					shell(h.name, "curl -sS --max-time 20 https://example.com/"),
				)
				p.hold(h, m)
				args := append([]string{"run", "--tty", "--env", "SHELL", "--profile", profile, "--", h.name}, h.once...)
				s := screen.Sit(t, p.command(t.Context(), "pwos", args...), patience/3)
				if got := s.Status(); got != 0 {
					t.Errorf("exit status %d", got)
				}
				m.expect(h.key, "keys", "42", "No such file", "response 403")
				for i, result := range m.results {
					if strings.Contains(result, "a secret") || strings.Contains(result, canary) || strings.Contains(result, "Example Domain") {
						t.Errorf("%d: %s gave %s", i, m.steps[i].tool, result)
					}
				}
				if strings.Contains(m.results[1], `made\n42`) != writes {
					t.Errorf("in its directory: %s", m.results[1])
				}
				if _, err := os.Stat(p.Path("new")); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the host has written outside: %v", err)
				}
				if log := p.run("pwos", "call", "Process.List"); !strings.Contains(log, `"intent":"profile:`+profile+`"`) {
					t.Errorf("processes: %s", log)
				}
			})
		}
	}
}

package hosts_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/screen"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestLateAnswer: at a terminal, a host waits for the answer of a person for longer than a call of the kernel does, as long as its preset
// says that it waits for its hook. With PWOS_LATE, such as 9m30s, the answer comes that late.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	late, _ := time.ParseDuration(os.Getenv("PWOS_LATE")) // else 0
	for _, h := range presetHosts() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			if preset.Named(h.name).Waits == 0 {
				t.Skip("it waits no longer than it always does")
			}
			p := newPlace(t)
			m := newModel(t, h.command("git init -q . 2>/dev/null; git push origin main || touch tried"))
			p.configure(fmt.Sprintf("[upstream.%s]\nurl = %q\nheader = %q\nfrom = %q\nallow = [\"* /…\"]\n[approval]\nwait = \"1s\"\n", h.model, m.url+h.url, h.header, "login:"+h.model))
			p.run("sh", "-c", "printf key | pwos login "+h.model)
			p.env = append(append(p.env, h.env...), "ANTHROPIC_API_KEY=", "OPENAI_API_KEY=")
			s := screen.Sit(t, p.command(t.Context(), "pwos", append([]string{h.name}, h.args...)...), late+patience)
			id := ""
			testkit.Eventually(t, "a question", func() bool {
				if found := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(p.run("pwos", "approvals")); found != nil {
					id = found[1]
				}
				return id != ""
			})
			testkit.Eventually(t, "the hook asks again, since a call waits for a second", func() bool {
				return strings.Count(p.run("pwos", "audit", "log", "--type", "Host.ToolUse"), `"error_id":"approval.pending"`) > 2
			})
			time.Sleep(late)
			p.run("pwos", "approve", id)
			s.Status()
			if !p.exists("tried") {
				t.Errorf("the tool was not used after the answer: %s", m.results)
			}
			if asked := p.run("pwos", "approvals", "--all"); strings.Count(asked, `"rule":"coder-push"`) != 1 {
				t.Errorf("it was asked more than once: %s", asked)
			}
		})
	}
}

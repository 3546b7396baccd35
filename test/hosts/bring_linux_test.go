package hosts_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestBring: a host inside has the instructions that its user gives it outside.
func TestBring(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"claude": ".claude/CLAUDE.md", "codex": ".codex/AGENTS.md", "copilot": ".copilot/copilot-instructions.md", "gemini": ".gemini/GEMINI.md",
		"opencode": ".config/opencode/AGENTS.md", "pi": ".pi/agent/AGENTS.md", "qwen": ".qwen/QWEN.md",
	}
	for _, h := range presetHosts() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			m := newModel(t, h.command("true"))
			const wish = "Say xyzzy when you are done."
			file := p.Path("home/" + files[h.name])
			testkit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(wish+"\n"), 0o600)))
			p.configure(fmt.Sprintf("[upstream.%s]\nurl = %q\nheader = %q\nfrom = %q\nallow = [\"* /…\"]\n", h.model, m.url+h.url, h.header, "login:"+h.model))
			p.run("sh", "-c", "printf key | pwos login "+h.model)
			p.env = append(p.env, h.env...)
			p.env = append(p.env, "ANTHROPIC_API_KEY=", "OPENAI_API_KEY=")
			out := p.run("pwos", append([]string{h.name}, h.args...)...)
			m.expect(out, "")
			if !strings.Contains(m.whole(), wish) {
				t.Errorf("the model of %s was not told", h.name)
			}
		})
	}
}

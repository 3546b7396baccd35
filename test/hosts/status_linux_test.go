package hosts_test

import (
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestStatus: after a session of a host in pwos run, git finds in the project what the host's tool has made, and nothing else.
func TestStatus(t *testing.T) {
	t.Parallel()
	for _, h := range []struct {
		name, tool string
		command    func(m *model) string
	}{
		{"claude", "Bash", func(m *model) string {
			return "pwos run --allow 'Tool:claude/*' --env ANTHROPIC_API_KEY --env ANTHROPIC_BASE_URL=" + m.url + " -- claude -p go --allowedTools Bash"
		}},
		{"codex", "exec_command", func(m *model) string {
			return "pwos run --allow 'Tool:codex/*' --env OPENAI_API_KEY -- codex exec -m x --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -c model_provider=s" +
				` -c 'model_providers.s={name="s",base_url="` + m.url + `/v1",wire_api="responses"}' go`
		}},
		{"gemini", "run_shell_command", func(m *model) string {
			return "pwos home import gemini .gemini/settings.json && pwos run --env GEMINI_API_KEY=x --env GOOGLE_GEMINI_BASE_URL=" + m.url + " -- gemini --skip-trust -y -p go"
		}},
		{"opencode", "bash", func(m *model) string {
			config, _ := json.Marshal(object{
				"provider": object{"anthropic": object{"options": object{"baseURL": m.url + "/v1", "apiKey": "x"}, "models": object{"x": object{}}}}, "model": "anthropic/x",
			})
			return "pwos run --env OPENCODE_DISABLE_MODELS_FETCH=1 --env OPENCODE_DISABLE_AUTOUPDATE=1 --env OPENCODE_CONFIG_CONTENT='" + string(config) + "' -- opencode run go"
		}},
	} {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.configure("")
			testkit.Must(t, os.Mkdir(p.Path("home/.gemini"), 0o700))
			testkit.WriteFile(t, p.Path("home/.gemini/settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`)
			p.run("sh", "-c", "git init -q && echo '*.log' >.gitignore && git add -A && git -c user.name=n -c user.email=e commit -qm one")
			input := object{"command": "echo made | tee made", "description": "make"}
			if h.name == "codex" {
				input = object{"cmd": "echo made | tee made"}
			}
			m := newModel(t, step{tool: h.tool, input: input})
			address, err := url.Parse(m.url)
			testkit.Must(t, err)
			out := p.run("sh", "-c", strings.Replace(h.command(m), "pwos run ", "pwos run --localhost "+address.Port()+" ", 1)+" </dev/null")
			m.expect(out, "made")
			if got := p.run("sh", "-c", "git status --porcelain --ignored"); got != "?? made\n" {
				t.Errorf("git status: %s\n%s", got, out)
			}
		})
	}
}

package preset_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/door/hook"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// doors have all that quoting may go wrong with.
func doors(program string) *preset.Doors {
	return &preset.Doors{
		Server: []string{`/b "in/pwos`, "mcp", "serve"}, Hook: []string{program, "hook", "run", "x"},
		Env: [][2]string{{"PWOS_RUNTIME_DIR", `/r 'un\"`}}, Home: `/ho me\`,
	}
}

// TestStart: of each host, what it starts with is complete, what is JSON is valid, and nothing stands for something any more.
func TestStart(t *testing.T) {
	t.Parallel()
	for _, h := range preset.Hosts() {
		s, err := h.Start(doors("/pwos"))
		testkit.Must(t, err)
		texts := map[string]string{}
		for i, arg := range s.Args {
			texts[fmt.Sprint("argument ", i)] = arg
		}
		for _, from := range []map[string]string{s.Env, s.Files} {
			for name, text := range from {
				texts[name] = text
			}
		}
		for name, text := range texts {
			if strings.Contains(text, "{{") {
				t.Errorf("%s: %s is %s", h.Name, name, text)
			}
			if i := strings.Index(text, `{"`); path.Ext(name) == ".json" || strings.Contains(name, "CONTENT") || i >= 0 && !strings.HasSuffix(name, ".js") && h.Name != "codex" {
				if !schema.Valid([]byte(strings.TrimSpace(text[max(i, 0):]))) {
					t.Errorf("%s: %s is no JSON: %s", h.Name, name, text)
				}
			}
		}
		if h.Package == "" || h.Tested == "" || h.Oldest == "" || len(h.Events) < 2 || len(h.Upstreams) == 0 || len(h.Servers) == 0 || h.Tools.Run == nil || h.Tools.Write == nil {
			t.Errorf("%s lacks something: %+v", h.Name, h)
		}
		if !hook.Asks(h.Events[0]) || preset.Named(h.Name) == nil || h.Keyed() == "" {
			t.Errorf("%s: it asks at %s", h.Name, h.Events[0])
		}
		for _, event := range h.Events[1:] {
			if hook.Asks(event) {
				t.Errorf("%s asks at %s too", h.Name, event)
			}
		}
		if out, err := exec.Command("/bin/sh", "-n", "-c", h.Keyed()).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", h.Name, err, out)
		}
	}
	bad := &preset.Host{Name: "bad", Args: []string{"{{hok}}"}}
	if _, err := bad.Start(doors("/pwos")); err == nil || err.Error() != "preset bad: {{hok}} stands for nothing" {
		t.Errorf("an unknown word: %v", err)
	}
}

// TestKeyed: where the kernel has the key, a host has the address and a placeholder, unless its user has set them.
func TestKeyed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ host, env, want string }{
		{"claude", "PWOS_UPSTREAM_ANTHROPIC=http://k", "http://k held-by-the-kernel"},
		{"claude", "PWOS_UPSTREAM_ANTHROPIC=http://k ANTHROPIC_AUTH_TOKEN=mine", "http://k mine"},
		{"claude", "PWOS_UPSTREAM_OPENAI=http://k", " "},
		{"copilot", "PWOS_UPSTREAM_OPENAI=http://k", "http://k openai"},
		{"copilot", "PWOS_UPSTREAM_OPENAI=http://k PWOS_UPSTREAM_ANTHROPIC=http://a", "http://a anthropic"},
		{"codex", "PWOS_UPSTREAM_OPENAI=http://k", `codex -c model_providers.pwos={name="OpenAI",wire_api="responses",base_url="http://k"} -c model_provider="pwos"`},
		{"codex", "PWOS_UPSTREAM_OPENAI=http://k PWOS_UPSTREAM_CODEX=http://c", `codex -c model_providers.pwos={name="OpenAI",wire_api="responses",base_url="http://c"} -c model_provider="pwos"`},
		{"codex", "PWOS_UPSTREAM_ANTHROPIC=http://k", "codex"},
	} {
		show := map[string]string{"claude": `"$ANTHROPIC_BASE_URL $ANTHROPIC_AUTH_TOKEN"`, "copilot": `"$COPILOT_PROVIDER_BASE_URL $COPILOT_PROVIDER_TYPE"`, "codex": `"$*"`}[tc.host]
		cmd := exec.Command("/bin/sh", "-c", preset.Named(tc.host).Keyed()+"echo "+show, "sh", tc.host)
		cmd.Env = strings.Fields(tc.env)
		out, err := cmd.Output()
		testkit.Must(t, err)
		if got := strings.TrimSuffix(string(out), "\n"); got != tc.want {
			t.Errorf("%s with %s has %q, want %q", tc.host, tc.env, got, tc.want)
		}
	}
}

// TestWrapper: the command of a hook that asks denies if its program is missing, fails or dies; one that tells does not.
func TestWrapper(t *testing.T) {
	t.Parallel()
	for program, asks := range map[string]int{"/nonexistent": 2, "/bin/false": 2, "/bin/true": 0, "/bin/kill": 2} {
		d := doors(program)
		if program == "/bin/kill" {
			d.Hook = []string{"/bin/sh", "-c", "kill -9 $$"}
		}
		h := &preset.Host{Name: "x", Args: []string{"{{ask.shell}}", "{{tell.shell}}"}}
		s, err := h.Start(d)
		testkit.Must(t, err)
		for i, arg := range s.Args {
			text, bad := schema.TypeOf[string]().Decode([]byte(arg))
			if bad != nil {
				t.Fatal(bad)
			}
			out, err := exec.Command("/bin/sh", "-c", *text.(*string)).CombinedOutput()
			status := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				status = exit.ExitCode()
			}
			if i == 0 && (status != asks || asks == 2 && !strings.Contains(string(out), "pwos: the tool was not allowed")) {
				t.Errorf("%s asks with status %d, want %d: %s", program, status, asks, out)
			}
			if i == 1 && status == 2 {
				t.Errorf("%s tells with status %d: %s", program, status, out)
			}
		}
	}
}

// TestTools: what a host's tools do is said once.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, h := range preset.Hosts() {
		seen := map[string]bool{}
		for _, list := range [][]string{h.Tools.Read, h.Tools.Write, h.Tools.Run, h.Tools.Search} {
			for _, tool := range list {
				if seen[tool] {
					t.Errorf("%s: %s has two meanings", h.Name, tool)
				}
				seen[tool] = true
			}
		}
	}
}

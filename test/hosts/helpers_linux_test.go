package hosts_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// team has the models of Claude Code, Codex and Gemini CLI, whose keys are the user's.
func (p *place) team(planner, coder, reviewer *model) {
	p.t.Helper()
	text := ""
	for _, up := range []struct{ name, url, header string }{
		{"anthropic", planner.url, "X-Api-Key"}, {"openai", coder.url + "/v1", "Authorization: Bearer"}, {"gemini", reviewer.url, "X-Goog-Api-Key"},
	} {
		text += fmt.Sprintf("[upstream.%s]\nurl = %q\nheader = %q\nfrom = %q\nallow = [\"* /…\"]\n", up.name, up.url, up.header, "login:"+up.name)
	}
	p.configure(text)
	p.env = append(p.env, "ANTHROPIC_API_KEY="+canary, "OPENAI_API_KEY="+canary, "GEMINI_API_KEY="+canary)
}

// TestHelpers: Claude Code starts Codex and Gemini CLI beside it, each with one command and a part of what it has itself. They make a
// change together, and hear of each other by mail alone; the story and the graph tell it, and each model gets its key from the kernel.
func TestHelpers(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	send := func(pid int64, says string) step {
		return step{tool: "Syscall_SendMsg", input: object{"receiver_pid": pid, "payload": says}}
	}
	wait := step{tool: "Ipc_Receive", input: object{"wait_ms": 50_000, "max": 1}}
	run := func(line string) step {
		return step{tool: "Bash", input: object{"command": line, "description": "a command"}}
	}
	const planner, reviewer, coder = 1, 2, 3
	planning := newModel(
		t, run("pwos run -d --name reviewer -- gemini -y -p 'review what comes by mail'"),
		run("pwos run -d --name coder --budget usd=1 -- codex exec --skip-git-repo-check -m x 'write greeting, and mail pid 2 for a review'"),
		run("pwos run -d --name third -- qwen -y -p 'say hello'"), wait, run("git add greeting && git commit -qm greeting && git log --oneline | wc -l"),
	)
	coding := newModel(
		t, step{tool: "exec_command", input: object{"cmd": "echo hello >greeting"}}, send(reviewer, "please review greeting"),
		wait, step{tool: "exec_command", input: object{"cmd": "echo hello, world >greeting"}}, send(reviewer, "done"),
	)
	reviewing := newModel(
		t, wait, step{tool: "run_shell_command", input: object{"command": "cat greeting"}}, send(coder, "whom does it greet?"),
		wait, step{tool: "run_shell_command", input: object{"command": "cat greeting"}}, send(planner, "greeting is approved"),
	)
	p.team(planning, coding, reviewing)
	p.run("sh", "-c", "git init -q . && git config user.name a && git config user.email a@example.com")
	out := p.run("pwos", "run", "--name", "planner", "--helper", "codex,gemini", "--budget", "usd=10", "--", "claude", "-p", "go", "--allowedTools", "Bash,mcp__pwos")
	planning.expect(out, "2", "3", "may not start qwen as a helper", "greeting is approved", "1")
	coding.expect(out, "", "DELIVERED", "whom does it greet?", "", "DELIVERED")
	reviewing.expect(out, "please review greeting", "hello", "DELIVERED", "done", "hello, world", "DELIVERED")
	planning.keyed(canary)
	coding.keyed("Bearer " + canary)
	reviewing.keyed(canary)
	if said := planning.whole(); !strings.Contains(said, "run -d --name NAME -- codex exec") {
		t.Errorf("the model is not told how to start one: %s", said[:min(len(said), 3000)])
	}
	if text := testkit.ReadFile(t, p.Path("project/greeting")); text != "hello, world\n" {
		t.Errorf("greeting is %q", text)
	}
	story := p.run("pwos", "story")
	for _, want := range []string{
		`"who":"planner","text":"spawns reviewer: `, `"who":"planner/coder","text":"sends mail to planner/reviewer `,
		`"who":"planner/reviewer","text":"receives mail → message 1 from planner/coder `, `"who":"planner","text":"receives mail → message `,
	} {
		if strings.Count(story, want) < 1 {
			t.Errorf("the story does not tell %s", want)
		}
	}
	if ended := p.run("pwos", "ps", "--all"); strings.Count(ended, `"state":"TERMINATED"`) != 3 {
		t.Errorf("a helper outlives its planner: %s", ended)
	}
}

// TestKilledHelpers: a host that is killed while it waits for mail is started again, and gets what came meanwhile, once; the story tells it.
func TestKilledHelpers(t *testing.T) {
	t.Parallel()
	for _, h := range presetHosts() {
		if h.name != "claude" && h.name != "codex" && h.name != "gemini" {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			m := newModel(t, step{tool: "Ipc_Receive", input: object{"wait_ms": 50_000, "max": 5}}, h.command("echo heard >>heard"))
			p.configure(fmt.Sprintf("[upstream.%s]\nurl = %q\nheader = %q\nfrom = %q\nallow = [\"* /…\"]\n", h.model, m.url+h.url, h.header, "login:"+h.model))
			p.run("sh", "-c", "printf key | pwos login "+h.model)
			p.env = append(append(p.env, h.env...), "ANTHROPIC_API_KEY=", "OPENAI_API_KEY=")
			args := h.args
			if h.name == "claude" {
				args = append(slices.Clone(args), "mcp__pwos")
			}
			p.run("pwos", append([]string{"run", "-d", "--name", "reviewer", "--profile", "coder", "--set", "program.restart=on-failure", "--", h.name}, args...)...)
			waits := func(times int) func() bool {
				return func() bool {
					return strings.Count(p.run("pwos", "audit", "log", "--type", "Step.Begin"), "Ipc_Receive") >= times
				}
			}
			testkit.Eventually(t, "it waits for mail", waits(1))
			found := regexp.MustCompile(`"agent_id":"reviewer".*"os_pid":([0-9]+)`).FindStringSubmatch(p.run("pwos", "ps"))
			if found == nil {
				t.Fatal("it does not run")
			}
			pid, err := strconv.Atoi(found[1])
			testkit.Must(t, err)
			testkit.Must(t, syscall.Kill(pid, syscall.SIGKILL))
			p.run("pwos", "send", "reviewer", "xyzzy")
			testkit.Eventually(t, "it has ended", func() bool { return strings.Contains(p.run("pwos", "ps", "--all"), `"state":"TERMINATED"`) })
			m.expect("", "xyzzy", "")
			if text := testkit.ReadFile(t, p.Path("project/heard")); text != "heard\n" {
				t.Errorf("it has heard %q", text)
			}
			if story := p.run("pwos", "story"); !strings.Contains(story, "receives mail → message 1 from operator, again") || !strings.Contains(story, "records the end of the program of reviewer: signalled") {
				t.Error("the story does not tell that it has got the message, or not that it was killed")
			}
		})
	}
}

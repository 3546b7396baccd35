package hosts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// project is a repository whose tests pass once its version is 2, a line is in todo, and a second commit is made.
const project = `git init -q && mkdir src notes
echo 'add() { echo $(($1 + $2)); }' >src/add.sh
echo 'mul() { echo $(($1 * $2)); }' >src/mul.sh
echo 'app() { echo $(($(add 2 3) + $(mul 2 3))); }' >app.sh
echo 1 >version
seq 9 >todo
cat >test.sh <<'EOF'
set -e
. ./src/add.sh; . ./src/mul.sh; . ./app.sh
test "$(add 2 3)" = 5; test "$(mul 2 3)" = 6; test "$(app)" = 11
test "$(cat version)" = 2; test "$(git rev-list --count HEAD)" = 2; grep -q later todo
EOF
git add -A && git -c user.name=n -c user.email=e commit -qm one`

// The numbers of the steps that destroy something.
const (
	reset  = 11
	remove = 15
	wreck  = 19
)

// forbid is the number of a step that Claude Code does not permit, of which it tells no end.
const forbid = 13

// session returns what a host does in 30 steps, three of which destroy something.
func session(t *testing.T, p *place, host string) *model {
	t.Helper()
	steps := make([]step, 30)
	for i := range steps {
		steps[i] = shell(host, fmt.Sprintf("echo %d >notes/%d", i+1, i+1))
	}
	at := func(number int, command string) { steps[number-1] = shell(host, command) }
	at(2, "echo 2 >version && git -c user.name=n -c user.email=e commit -qam two")
	at(3, "echo later >>todo")
	at(reset, "git reset -q --hard HEAD~1")
	at(remove, "rm -rf src")
	at(forbid, "touch forbidden") // by the host's own rules, where it has any
	at(22, "mkdir -p src && echo new >src/new.sh")
	at(24, "sed -i 1s/1/first/ todo")
	at(26, "exit 3")
	if host == "claude" {
		file := p.Path("project/app.sh")
		steps[wreck-2] = step{tool: "Read", input: object{"file_path": file}}
		steps[wreck-1] = step{tool: "Write", input: object{"file_path": file, "content": "app() { broken\n"}}
	} else {
		at(wreck, "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: app.sh\n@@\n-app() { echo $(($(add 2 3) + $(mul 2 3))); }\n+app() { broken\n*** End Patch\nEOF")
	}
	return newModel(t, steps...)
}

// insider is a host that is run inside, with a model.
type insider struct {
	name    string
	command func(m *model) string
}

func inside() []insider {
	return []insider{
		{"claude", func(m *model) string {
			return " --env ANTHROPIC_API_KEY --env ANTHROPIC_BASE_URL=" + m.url + " -- claude -p go --allowedTools Bash Read Write --disallowedTools 'Bash(touch:*)'"
		}},
		{"codex", func(m *model) string {
			return " --env OPENAI_API_KEY -- codex exec -m x --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -c model_provider=s" +
				` -c 'model_providers.s={name="s",base_url="` + m.url + `/v1",wire_api="responses"}' go`
		}},
	}
}

// run runs the host with a model, and returns what it says.
func (h insider) run(p *place, m *model) string {
	p.t.Helper()
	address, err := url.Parse(m.url)
	testkit.Must(p.t, err)
	return p.run("sh", "-c", "pwos run --localhost "+address.Port()+" --allow 'Tool:"+h.name+"/*'"+h.command(m)+" </dev/null")
}

// TestUndoSteps: of a session of a host in pwos run, the steps that destroyed something are undone alone, in the order that hurts. The
// project's tests pass again, and what the other steps did is still there.
func TestUndoSteps(t *testing.T) {
	t.Parallel()
	for _, h := range inside() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.configure("")
			p.run("sh", "-c", project)
			m := session(t, p, h.name)
			out := h.run(p, m)
			if len(m.results) != len(m.steps) {
				t.Fatalf("the model got %d results: %q\n%s", len(m.results), m.results, out)
			}
			if out, err := p.try("sh", "-c", "sh test.sh 2>&1"); err == nil {
				t.Fatalf("the tests of the destroyed project pass: %s", out)
			}
			p.alone(h.name, len(m.steps))
			for _, one := range []struct {
				step int
				then string // what is true afterwards
			}{
				{remove, `test -e src/add.sh -a -e src/new.sh -a "$(cat version)" = 1`},
				{reset, `test "$(cat version)" = 2 -a "$(head -1 todo)" = first -a "$(tail -1 todo)" = later`},
				{wreck, `sh test.sh`},
			} {
				out := p.run("pwos", "undo", fmt.Sprintf("%s:%d", h.name, one.step))
				p.run("sh", "-c", one.then+" || { git status; cat todo; echo '"+strings.ReplaceAll(out, "'", "")+"'; exit 1; }")
				if out := p.run("sh", "-c", "git fsck --strict 2>&1"); strings.Contains(out, "error") || strings.Contains(out, "missing") {
					t.Errorf("git fsck after the undo of %d: %s", one.step, out)
				}
			}
			for i, s := range m.steps {
				command, _ := s.input.(object)["command"].(string)
				if h.name == "codex" {
					command = s.input.(object)["cmd"].(string)
				}
				if name := fmt.Sprintf("project/notes/%d", i+1); strings.HasPrefix(command, "echo ") && strings.Contains(command, "notes/") {
					if _, err := os.Stat(p.Path(name)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

// TestConnections: a connection that a tool call of a host in pwos run makes is of the program and of the step; the host's own are of no
// step. From the entry, the causes lead to the tool call, and to the prompt.
func TestConnections(t *testing.T) {
	t.Parallel()
	for _, h := range inside() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.configure("")
			p.run("sh", "-c", "git init -q") // steps are kept of a repository
			m := newModel(t, shell(h.name, "curl -s https://refused.test/ || true"), shell(h.name, "true"))
			out := h.run(p, m)
			if len(m.results) != len(m.steps) {
				t.Fatalf("the model got %d results: %q\n%s", len(m.results), m.results, out)
			}
			made := false
			for line := range strings.Lines(p.run("pwos", "audit", "log", "--json")) {
				var e struct {
					Seq     int64
					Request struct{ Host, Program, Step string }
				}
				if !strings.Contains(line, `"type":"Net.Connect"`) {
					continue
				}
				testkit.Must(t, json.Unmarshal([]byte(line), &e))
				switch {
				case e.Request.Host == "refused.test":
					why := p.run("pwos", "why", fmt.Sprint(e.Seq))
					made = filepath.Base(e.Request.Program) == "curl" && e.Request.Step == h.name+":1" &&
						strings.Contains(why, `"type":"Step.Begin"`) && strings.Contains(why, `,"prompt":"go"}`)
					t.Logf("the tool's connection: %+v\n%s", e, why)
				case e.Request.Step != "" || e.Request.Program == "":
					t.Errorf("a connection of the host: %+v", e)
				}
			}
			if !made {
				t.Errorf("the tool's connection is not in the record, or not as it should be\n%s", out)
			}
		})
	}
}

// TestRefusedProgramsTold: why programs were refused in a tool call of a host in pwos run is told to its model with the tool's result,
// whether the command succeeds or fails. It is not told again later.
func TestRefusedProgramsTold(t *testing.T) {
	t.Parallel()
	for _, h := range inside() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.configure("")
			testkit.Must(t, os.WriteFile(p.Path("policy.cedar"), []byte(`
@id("no-deploy") @fix("ask for a release") forbid(principal, action == Program::"deploy", resource);
@id("pushing") @ask("30m") forbid(principal, action == Program::"push", resource);
`), 0o600))
			p.run("sh", "-c", "git init -q; for name in deploy push; do cp /bin/true $name; done; echo './deploy; true' >works.sh; echo ./push origin >fails.sh")
			m := newModel(t, shell(h.name, "sh works.sh"), shell(h.name, "sh fails.sh"), shell(h.name, "true"))
			var told []string
			m.steps[1].before = func() { told = append(told, m.asked) }
			m.steps[2].before = func() { told = append(told, m.asked) }
			out := h.run(p, m)
			if len(m.results) != len(m.steps) || len(told) != 2 {
				t.Fatalf("the model got %d results: %q\n%s", len(m.results), m.results, out)
			}
			for _, text := range []string{`project/deploy: the rule \"no-deploy\" forbids this exec of deploy. Advice: ask for a release`, `project/push origin: the rule \"pushing\" requires an approval. The question q-1 was filed.`} {
				if !strings.Contains(m.asked, text) || strings.Count(m.asked, text) != 1 {
					t.Errorf("the model is told %d times: %s\n%s", strings.Count(m.asked, text), text, m.asked)
				}
			}
			if !strings.Contains(told[0], "no-deploy") || !strings.Contains(told[1], "pushing") {
				t.Errorf("after the first step the model is told %s\nafter the second %s", told[0], told[1])
			}
		})
	}
}

// TestNamedPrograms: a tool of a host in pwos run whose command names a program is asked about before it runs, and runs once it is
// approved, the program included; one that names a forbidden program does not run, and the model is told why.
func TestNamedPrograms(t *testing.T) {
	t.Parallel()
	for _, h := range inside() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.configure("")
			testkit.Must(t, os.WriteFile(p.Path("policy.cedar"), []byte(`
@id("no-deploy") @fix("ask for a release") forbid(principal, action == Program::"deploy", resource);
@id("pushing") @ask("30m") forbid(principal, action == Program::"push", resource);
`), 0o600))
			p.run("sh", "-c", "git init -q; cp /bin/true deploy; cp /bin/touch push")
			m := newModel(t, shell(h.name, "cd . && ./push pushed"), shell(h.name, "touch begun; ./deploy"))
			answered := make(chan error, 1)
			go func() {
				_, err := p.try("sh", "-c", "until pwos approvals | grep -q q-1; do sleep 0.1; done; pwos approve q-1")
				answered <- err
			}()
			out := h.run(p, m)
			testkit.Must(t, <-answered)
			if len(m.results) != 2 || !strings.Contains(m.results[1], `forbids this exec of deploy, which the command names: ask for a release`) {
				t.Errorf("the model got %d results: %q\n%s", len(m.results), m.results, out)
			}
			for name, want := range map[string]bool{"pushed": true, "begun": false} {
				if _, err := os.Stat(p.Path("project/" + name)); (err == nil) != want {
					t.Errorf("%s was made: %t\n%q", name, err == nil, m.results)
				}
			}
			if all := p.run("pwos", "approvals", "--all"); strings.Count(all, `"id":`) != 1 || !strings.Contains(all, "Host.ToolUse") {
				t.Errorf("there are other questions: %s", all)
			}
		})
	}
}

// TestInterruptedStep: a tool that a person interrupts, of which Claude Code tells nothing, is a step until the next prompt at most, and
// the next tool is one of its own.
func TestInterruptedStep(t *testing.T) {
	t.Parallel()
	h := allHosted()[0]
	p := newPlace(t)
	m := newModel(t, shell(h.name, "touch begun; sleep 100"), shell(h.name, "touch made"))
	p.hold(h, m)
	p.run("sh", "-c", project)
	p.welcome(h.name)
	s := p.sit(h, "Tool:"+h.name+"/*,Upstream:"+h.upstream)
	exists := func(name string) func() bool {
		return func() bool { _, err := os.Stat(p.Path("project/" + name)); return err == nil }
	}
	s.Expect("❯")
	s.Insist("zz", "zz")
	s.Insist("\r", "sleep")
	testkit.Eventually(t, "the first tool runs", exists("begun"))
	s.Insist("\x1b", "nterrupted")
	s.Insist("zz", "zz")
	s.Insist("\r", "done")
	if !exists("made")() {
		t.Error("the second tool did not run")
	}
	p.alone(h.name, 2)
}

// welcome tells a host's home that the user has seen what it shows first, and trusts the project.
func (p *place) welcome(host string) {
	p.t.Helper()
	home := p.Path("s/homes/" + host)
	seen, err := json.Marshal(object{"hasCompletedOnboarding": true, "projects": object{p.Path("project"): object{"hasTrustDialogAccepted": true}}})
	testkit.Must(p.t, errors.Join(err, os.MkdirAll(home, 0o700), os.WriteFile(filepath.Join(home, ".claude.json"), seen, 0o600)))
}

// alone fails the test unless the steps of an agent are so many uses of tools, each of which it made alone.
func (p *place) alone(agent string, want int) {
	p.t.Helper()
	for n := 1; n <= want; n++ {
		text := p.run("pwos", "call", "Step.Get", "agent="+agent, fmt.Sprintf("step=%d", n))
		out, err := schema.StepGet.Decode([]byte(text))
		testkit.Must(p.t, err)
		for _, s := range out.Records {
			if s.Kind != schema.StepCall || s.Shared {
				p.t.Errorf("step %d is no use of a tool alone: %s", n, text)
			}
		}
	}
	if text, err := p.try("pwos", "call", "Step.Get", "agent="+agent, fmt.Sprintf("step=%d", want+1)); err == nil {
		p.t.Errorf("there is another step: %s", text)
	}
}

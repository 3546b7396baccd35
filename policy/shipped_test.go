package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/policy"
)

// TestShipped: what an agent under the profile coder executes is asked about where it publishes or deletes for good, unless its user has rules
// of that profile; no other agent's is, and nothing that cannot be looked at.
func TestShipped(t *testing.T) {
	t.Parallel()
	under := agents{
		7: {PID: 7, AgentID: "claude", Origin: "os:///", Intent: "profile:coder"},
		8: {PID: 8, AgentID: "child", ParentPID: 7, Origin: "os:///", Intent: "profile:reader"},
		9: {PID: 9, AgentID: "codex", Origin: "os:///", Intent: "profile:worker"},
	}
	g := policy.NewGuard(policy.Forms{}, under, nil)
	asks := func(pid int64, command string) string {
		argv, err := json.Marshal(strings.Fields(command))
		testkit.Must(t, err)
		name, _, _ := strings.Cut(command, " ")
		exec := call(t, pid, "Program.Exec", `{"path":"/usr/bin/`+name+`","argv":`+string(argv)+`,"cwd":"/"}`)
		switch v := g.Stage(exec); {
		case !v.Allows():
			return "refused: " + v.Fault.Message
		case exec.Inquiry != nil:
			return exec.Inquiry.Rule
		}
		return ""
	}
	for command, want := range map[string]string{
		"git push": "coder-push", "git -C /x push --force origin main": "coder-push", "git push --dry-run": "", "git stash push": "", "git pull": "", "git commit -m x": "",
		"git clean -fdx": "coder-clean", "git clean -n": "", "npm publish": "coder-publish", "npm publish --dry-run": "", "npm install": "", "npm test": "",
		"cargo publish": "coder-publish", "cargo build": "", "twine upload dist/x": "coder-upload", "docker push a/b": "coder-upload", "docker build .": "",
		"gh pr create": "coder-forge", "gh pr view 7": "", "glab mr merge 7": "coder-forge", "rm -rf src": "", "make publish": "",
	} {
		for pid, mine := range map[int64]bool{7: true, 8: true, 9: false} {
			want := want
			if !mine {
				want = ""
			}
			if got := asks(pid, command); got != want {
				t.Errorf("%d: %q: %q, want %q", pid, command, got, want)
			}
		}
	}
	if !g.JudgesPrograms(7) || !g.JudgesPrograms(8) || g.JudgesPrograms(9) || g.JudgesPrograms(99) {
		t.Error("it judges programs of others than those of coder")
	}
	for command, want := range map[string]string{"cd x && git push origin main": "coder-push", "git status": "", "echo git push": ""} {
		text, err := json.Marshal(command)
		testkit.Must(t, err)
		use := call(t, 7, "Host.ToolUse", `{"host":"claude","session":"s","tool":"Bash","input":{"command":`+string(text)+`}}`)
		got := ""
		if v := g.Stage(use); !v.Allows() {
			got = v.Fault.Message
		} else if use.Inquiry != nil {
			got = use.Inquiry.Rule
		}
		if got != want {
			t.Errorf("a tool with %q: %q, want %q", command, got, want)
		}
	}
	for _, more := range []string{`,"hidden":true`, `,"cut":true`} {
		exec := call(t, 7, "Program.Exec", `{"path":"/usr/bin/git","argv":["git","push"],"cwd":"/"`+more+`}`)
		if v := g.Stage(exec); !v.Allows() || exec.Inquiry != nil {
			t.Errorf("one with %s: %v", more, v.Fault)
		}
	}

	g.Use(compile(t, `@id("mine") forbid(principal, action == Program::"git", resource) when {context.args.argv.contains("pull")};`))
	if got := asks(7, "git pull"); !strings.Contains(got, `the rule "mine"`) {
		t.Errorf("a rule of the user: %s", got)
	}
	if got := asks(7, "git push"); got != "coder-push" {
		t.Errorf("beside a rule of the user: %s", got)
	}
	set, problems := policy.Compile([]policy.File{{Name: "profiles/coder.cedar", Text: []byte(`@id("own") forbid(principal in Profile::"coder", action == Program::"make", resource);`)}})
	if set == nil {
		t.Fatal(problems)
	}
	g.Use(set)
	if got := asks(7, "git push") + asks(7, "make x"); !strings.Contains(got, `the rule "own"`) || strings.Contains(got, "coder-push") {
		t.Errorf("with rules of the user in place of them: %s", got)
	}
	g.Use(nil)
	if policy.Shipped("coder") == nil || policy.Shipped("reader") != nil || policy.Shipped("../x") != nil {
		t.Error("there are shipped rules of others")
	}
}

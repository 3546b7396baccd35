package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestGuard shows whose calls are judged, and what a refusal tells the caller.
func TestGuard(t *testing.T) {
	t.Parallel()
	set := compile(t, `@id("no-prod") @fix("ask lead") forbid(principal, action == Syscall::"Memory.Set", resource);
@id("ask") @ask("30m") forbid(principal, action == Syscall::"Memory.Get", resource);`)
	g := policy.NewGuard(policy.Forms{}, world, nil)
	write := call(t, 8, "Memory.Set", `{"key":"k","value":1}`)
	write.Caller.PID, write.Message.Type = 8, "Memory.Set"
	if v := g.Stage(write); !v.Allows() {
		t.Errorf("without rules: %v", v.Fault)
	}
	g.Use(set)
	f := g.Stage(write).Fault
	if !errors.Is(f, fault.PolicyDenied) || f.Detail("rule") != "no-prod" || f.Detail("policy") != set.Hash || f.Detail("at") != "" || f.Fix != "ask lead" {
		t.Errorf("to an agent: %+v", f)
	}
	write.Caller.PID = kernel.Operator
	if f := g.Stage(write).Fault; f.Detail("at") != "policy.cedar:1" || !strings.Contains(f.Message, "policy.cedar:1") {
		t.Errorf("to the operator that acts as an agent: %+v", f)
	}
	write.PID = kernel.Operator
	if v := g.Stage(write); !v.Allows() {
		t.Errorf("the operator: %v", v.Fault)
	}
	read := call(t, 8, "Memory.Get", `{"pid":8,"key":"/k"}`)
	if v, q := g.Stage(read), read.Inquiry; !v.Allows() || q == nil || q.Rule != "ask" || q.Policy != set.Hash || q.Stands != 30*time.Minute || string(q.Data) != `{"key":"k"}` {
		t.Errorf("a rule that asks: %v, %+v", v.Fault, q)
	}
	if shown := g.Show(1); len(shown.Rules) != 1 || shown.More != 1 || shown.Rules[0].Decided != 2 {
		t.Errorf("%+v", shown)
	}
	g.Refuse("a.cedar:1: no")
	if f := g.Stage(call(t, 8, "Syscall.Ping", `{"payload":1}`)).Fault; !errors.Is(f, fault.PolicyInvalid) {
		t.Errorf("files that are not valid: %v", f)
	}
	if v := g.Stage(write); !v.Allows() {
		t.Errorf("the operator, with files that are not valid: %v", v.Fault)
	}
	g.Use(nil)
	if v := g.Stage(call(t, 8, "Syscall.Ping", `{"payload":1}`)); !v.Allows() {
		t.Errorf("without rules again: %v", v.Fault)
	}
}

// TestProgram: the kernel is asked about an exec only if a rule decides about it, or the rules could not be loaded; a refusal names the
// program.
func TestProgram(t *testing.T) {
	t.Parallel()
	g := policy.NewGuard(policy.Forms{}, world, nil)
	push := &schema.ProgramExecInput{Path: "/usr/bin/git", Argv: []string{"git", "push"}, Cwd: "/"}
	pull := &schema.ProgramExecInput{Path: "/usr/bin/git", Argv: []string{"git", "pull"}, Cwd: "/"}
	decides := func(in *schema.ProgramExecInput) bool { decides, _ := g.Program(8, 3, in); return decides }
	asked := func() [3]bool { return [...]bool{g.JudgesPrograms(8), decides(push), decides(pull)} }
	if got := asked(); got != [...]bool{false, false, false} {
		t.Errorf("without rules: %v", got)
	}
	g.Use(compile(t, `forbid(principal, action, resource);`))
	if got := asked(); got != [...]bool{false, false, false} {
		t.Errorf("with a rule for every call: %v", got)
	}
	g.Use(compile(t, `@id("no-push") @ask("1m") forbid(principal, action == Program::"git", resource == Origin::"os:///") when {context.args.argv.contains("push") && context.via == "channel"};`))
	if got := asked(); got != [...]bool{true, true, false} {
		t.Errorf("with a rule: %v", got)
	}
	g.Use(compile(t, `@id("no-push") forbid(principal, action == Program::"git", resource);`))
	exec := call(t, 8, "Program.Exec", `{"path":"/usr/bin/git","argv":["git"],"cwd":"/"}`)
	if f := g.Stage(exec).Fault; f == nil || !strings.HasPrefix(f.Message, `the rule "no-push" forbids this exec of git`) {
		t.Errorf("the refusal is %v", f)
	}
	g.Refuse("a.cedar:1: no")
	if got := asked(); got != [...]bool{true, true, true} {
		t.Errorf("with files that are not valid: %v", got)
	}
}

// TestNamed: of the command of a tool, the programs in its simple commands are known of which each word is literal. What a shell does
// itself, or expands, is none.
func TestNamed(t *testing.T) {
	t.Parallel()
	g := policy.NewGuard(policy.Forms{}, world, nil)
	g.Use(compile(t, `@ask("1m") forbid(principal, action == Program::"*", resource) unless {context.args.argv.contains("-h")};`))
	named := func(input string, cut ...string) string {
		use := call(t, 8, "Host.ToolUse", `{"host":"claude","session":"s","tool":"Bash","input":`+input+`}`)
		in := use.Input.(*schema.ToolUseInput)
		in.Cut = cut
		return fmt.Sprintf("%q", g.Named(use, in))
	}
	for command, want := range map[string]string{
		`cd x && git push`: `[["git" "push"]]`, `git push -h; git pull`: `[["git" "pull"]]`,
		"a | b\nc & (d; e) && { f; } || ! g": `[["a"] ["b"] ["c"] ["d"] ["e"] ["f"] ["g"]]`,
		`if a; then b; fi; while c; do d; done; time e; for x in 1 2; do f; done; case y in z) g;; esac`: `[["a"] ["b"] ["c"] ["d"] ["e"] ["f"] ["g"]]`,
		`echo "$(git push)" $(a) <(b)`:                                                   `[["git" "push"] ["a"] ["b"]]`,
		`X=1 git push >out 2>&1 <in`:                                                     `[["git" "push"]]`,
		`git push && git push`:                                                           `[["git" "push"] ["git" "push"]]`,
		`git "a b" 'c "d' e\ f "g\"h" i"j"'k' "\n" ""`:                                   `[["git" "a b" "c \"d" "e f" "g\"h" "ijk" "\\n" ""]]`,
		"git pu\\\nsh \"o\\\nn\"":                                                        `[["git" "push" "on"]]`,
		`git reset HEAD~1 HEAD^ stash@{0} a=b --x=y #z`:                                  `[["git" "reset" "HEAD~1" "HEAD^" "stash@{0}" "a=b" "--x=y"]]`,
		`/usr/bin/git push; ./x; exec git a; command git b; exec -a x git c`:             `[["/usr/bin/git" "push"] ["./x"] ["git" "a"] ["git" "b"]]`,
		`echo a; printf b; test c; [ d ]; true; export E=f; . ./g; eval 'git push'; X=1`: `[]`,
		`git $x; git ${x}; git "$x"; git *; git a?; git [a]; git {a,b}; git {1..2}; git ~/x; git $'a'; $git push; git "$(a -h)"; git $((1))`: `[]`,
		`git push "`: `[]`, "": `[]`, `sh -c 'git push'`: `[["sh" "-c" "git push"]]`,
		"cat <<EOF\ngit push\n$(git pull)\nEOF": `[["cat"] ["git" "pull"]]`,
		`git 'ä'`:                               `[["git" "ä"]]`,
	} {
		if got := named(string(schema.AppendString([]byte(`{"command":`), command)) + "}"); got != want {
			t.Errorf("%s names %s, want %s", command, got, want)
		}
	}
	for input, want := range map[string]string{
		`{"cmd":"git push"}`: `[["git" "push"]]`, `{"script":"git push"}`: `[["git" "push"]]`, `{"text":"git push"}`: `[]`, `"git push"`: `[]`, `{"command":7}`: `[]`,
		`{"command":["bash","-lc","git push"]}`: `[["git" "push"] ["bash" "-lc" "git push"]]`, `{"command":["git","push"]}`: `[["git" "push"]]`, `{"command":[]}`: `[]`,
	} {
		if got := named(input); got != want {
			t.Errorf("%s names %s, want %s", input, got, want)
		}
	}
	if got := named(`{"command":"git push"}`, "command"); got != "[]" {
		t.Errorf("a command that was cut names %s", got)
	}
	if got := named(`{"command":"git push"}`, "*"); got != "[]" {
		t.Errorf("an input that was cut names %s", got)
	}
}

// FuzzNamed: whatever a command is, what it names can be judged.
func FuzzNamed(f *testing.F) {
	g := policy.NewGuard(policy.Forms{}, world, nil)
	g.Use(compile(f, `@ask("1m") forbid(principal, action == Program::"*", resource);`))
	for _, command := range []string{"cd x && git push", "echo $(a \"b\")", "((((", "a <<E\n", "\\", "a\\\n", "{a,", "$'\\x", "coproc a", "a() { b; }"} {
		f.Add(command)
	}
	f.Fuzz(func(t *testing.T, command string) {
		input := string(schema.AppendString([]byte(`{"command":`), command)) + "}"
		use := call(t, 8, "Host.ToolUse", `{"host":"claude","session":"s","tool":"Bash","input":`+input+`}`)
		for _, argv := range g.Named(use, use.Input.(*schema.ToolUseInput)) {
			if len(argv) == 0 || argv[0] == "" {
				t.Errorf("%q names %q", command, argv)
			}
		}
	})
}

// BenchmarkProgram measures what rules add to an exec.
func BenchmarkProgram(b *testing.B) {
	g := policy.NewGuard(policy.Forms{}, world, nil)
	g.Use(compile(b, `@id("no-push") forbid(principal, action == Program::"git", resource) when {context.args.argv.contains("push")};`))
	for name, path := range map[string]string{"another": "/bin/true", "named": "/usr/bin/git"} {
		b.Run(name, func(b *testing.B) {
			in := &schema.ProgramExecInput{Path: path, Argv: []string{"git", "pull"}, Cwd: "/"}
			for b.Loop() {
				g.Program(8, 3, in)
			}
		})
	}
}

// BenchmarkGate measures the cost of the policy for a call, without rules and with 50 for its syscall.
func BenchmarkGate(b *testing.B) {
	for _, n := range []int{0, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := policy.NewGuard(policy.Forms{}, world, nil)
			var text strings.Builder
			for i := range n {
				fmt.Fprintf(&text, "forbid(principal, action == Syscall::\"Memory.Set\", resource) when {context.args.key like \"prod%d/*\"};\n", i)
			}
			if n > 0 {
				g.Use(compile(b, text.String()))
			}
			c := call(b, 8, "Memory.Set", `{"key":"notes/1","value":{"a":1}}`)
			b.ReportAllocs()
			for b.Loop() {
				if v := g.Stage(c); !v.Allows() {
					b.Fatal(v.Fault)
				}
			}
		})
	}
}

// TestNormalOfPrograms: the same program, in another step, is the same question, and so is another use of a tool with the same input.
func TestNormalOfPrograms(t *testing.T) {
	t.Parallel()
	j := judge(nil)
	for data, want := range map[string]string{
		`{"path":"/bin/x","argv":["x","a"],"cwd":"/d","step":"a:1"}`: `{"argv":["x","a"],"cwd":"/d","path":"/bin/x"}`,
		`{"path":"/bin/x","argv":["x","a"],"cwd":"/d"}`:              `{"argv":["x","a"],"cwd":"/d","path":"/bin/x"}`,
	} {
		if got, err := j.Normal(call(t, 8, "Program.Exec", data)); err != nil || string(got) != want {
			t.Errorf("%s is %s, %v", data, got, err)
		}
	}
	one, err := j.Normal(call(t, 8, "Host.ToolUse", `{"host":"h","session":"s","tool":"Bash","use":"1","input":{}}`))
	if err != nil || string(one) != `{"host":"h","input":{},"session":"s","tool":"Bash"}` {
		t.Errorf("the use of a tool is %s, %v", one, err)
	}
}

// TestNormalOfBodies: two fetches are the same call if their bodies by reference have the same content. A body that was not
// read has no normal form.
func TestNormalOfBodies(t *testing.T) {
	t.Parallel()
	j := judge(nil)
	normal := func(path, content string) (string, error) {
		text, err := j.Normal(call(t, 8, "Http.Fetch", fmt.Sprintf(`{"url":"https://a.example/","method":"POST","bodyRef":{"scheme":"file","path":%q}%s}`, path, content)))
		return string(text), err
	}
	if text, err := normal("/a", ""); err == nil {
		t.Errorf("a body that was not read has the normal form %s", text)
	}
	one, err := normal("/a", `,"bodyContent":{"digest":"sha256-x","size":1}`)
	again, err2 := normal("/b", `,"bodyContent":{"digest":"sha256-x","size":1}`)
	other, err3 := normal("/a", `,"bodyContent":{"digest":"sha256-y","size":1}`)
	if err := errors.Join(err, err2, err3); err != nil || one != again || one == other {
		t.Errorf("%v: %s, %s, %s", err, one, again, other)
	}
}

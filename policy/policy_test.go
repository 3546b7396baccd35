package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
)

// agents are processes by PID.
type agents map[int64]*schema.Descriptor

func (a agents) Process(pid int64) *schema.Descriptor { return a[pid] }

var world = agents{
	7: {PID: 7, AgentID: "lead", Origin: "os:///", Intent: "key:SHA256:abc"},
	8: {PID: 8, AgentID: "worker", ParentPID: 7, Origin: "os:///", Intent: "key:SHA256:forged"},
}

func compile(t testing.TB, text string) *policy.Set {
	t.Helper()
	set, problems := policy.Compile([]policy.File{{Name: "policy.cedar", Text: []byte(text)}})
	for _, p := range problems {
		if !p.Warning {
			t.Fatalf("%s\n%v", text, p)
		}
	}
	return set
}

func judge(set *policy.Set) *policy.Judge {
	return &policy.Judge{Set: set, Processes: world, Forms: policy.Forms{
		URL: func(raw string) (string, string, bool) {
			host, _, _ := strings.Cut(strings.TrimPrefix(strings.ToLower(raw), "https://"), "/")
			return strings.ToLower(raw), host, true
		},
	}}
}

// call returns a call of pid as it is decoded from a line.
func call(t testing.TB, pid int64, typ, data string) *kernel.Call {
	t.Helper()
	row, ok := schema.Lookup(typ)
	if !ok {
		t.Fatalf("no syscall %s", typ)
	}
	in, err := row.Input().Decode([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return &kernel.Call{Request: kernel.Request{Syscall: row, Input: in}, Decision: kernel.Decision{PID: pid, Origin: "os:///", Moment: kernel.Moment{Tick: 3}}}
}

// TestDecide shows the decision of rules on a call, by the name of the rule.
func TestDecide(t *testing.T) {
	t.Parallel()
	const set, get, fetch, list, use, exec = "Memory.Set", "Memory.Get", "Http.Fetch", "Memory.List", "Host.ToolUse", "Program.Exec"
	tests := []struct {
		name, rules string
		typ, data   string
		want        string // the rule; "": none
	}{
		{"another syscall", `@id("a") forbid(principal, action == Syscall::"Memory.Set", resource);`, get, `{"key":"k"}`, ""},
		{"the syscall", `@id("a") forbid(principal, action == Syscall::"Memory.Set", resource);`, set, `{"key":"k","value":1}`, "a"},
		{"one of several", `@id("a") forbid(principal, action in [Syscall::"Memory.Set", Syscall::"Memory.Get"], resource);`, get, `{"key":"k"}`, "a"},
		{"without an id", `forbid(principal, action == Syscall::"Memory.Set", resource);`, set, `{"key":"k","value":1}`, "policy.cedar#1"},
		{"key", `@id("a") forbid(principal, action == Syscall::"Memory.Set", resource) when {context.args.key like "prod/*"};`, set, `{"key":"prod/x","value":1}`, "a"},
		{"key with a slash", `@id("a") forbid(principal, action == Syscall::"Memory.Set", resource) when {context.args.key like "prod/*"};`, set, `{"key":"/prod/x","value":1}`, "a"},
		{"another key", `@id("a") forbid(principal, action == Syscall::"Memory.Set", resource) when {context.args.key like "prod/*"};`, set, `{"key":"test/x","value":1}`, ""},
		{"prefix", `@id("a") forbid(principal, action == Syscall::"Memory.List", resource) when {context.args has prefix && context.args.prefix like "prod/*"};`, list, `{"prefix":"/prod/"}`, "a"},
		{"no prefix", `@id("a") forbid(principal, action == Syscall::"Memory.List", resource) unless {context.args has prefix};`, list, `{}`, "a"},
		{"value as canonical text", `@id("a") forbid(principal, action == Syscall::"Memory.Set", resource) when {context.args.value == "{\"a\":1,\"b\":\"\u{e9}\"}"};`, set, `{"key":"k","value":{ "b":"\u00e9", "a":1.0 }}`, "a"},
		{"null", `@id("a") forbid(principal, action == Syscall::"Memory.Set", resource) when {context.args.value == "null"};`, set, `{"key":"k","value":null}`, "a"},
		{"host", `@id("a") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args.host == "evil.example"};`, fetch, `{"url":"https://EVIL.example/x"}`, "a"},
		{"default method", `@id("a") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args.method == "GET"};`, fetch, `{"url":"https://a.example/x"}`, "a"},
		{"body", `@id("a") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args has body && context.args.body like "*secret*"};`, fetch, `{"url":"https://a.example/x","method":"POST","body":"my secret"}`, "a"},
		{"body by reference", `@id("a") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args has body && context.args.body like "*secret*"};`, fetch, `{"url":"https://a.example/x","method":"POST","bodyRef":{"scheme":"file","path":"/b"}}`, "a"},
		{"body by reference, nobody asks", `@id("a") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args.host == "x"};`, fetch, `{"url":"https://a.example/x","method":"POST","bodyRef":{"scheme":"file","path":"/b"}}`, ""},
		{"body by reference, its size", `@id("a") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args has bodyRef && context.args.bodyRef.size > 1000};`, fetch, `{"url":"https://a.example/x","method":"POST","bodyRef":{"scheme":"file","path":"/b"},"bodyContent":{"digest":"sha256-x","size":1001}}`, "a"},
		{"body by reference, another digest", `@id("a") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args has bodyRef && context.args.bodyRef.digest == "sha256-y"};`, fetch, `{"url":"https://a.example/x","method":"POST","bodyRef":{"scheme":"file","path":"/b"},"bodyContent":{"digest":"sha256-x","size":1001}}`, ""},
		{"body by reference, not read", `@id("a") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args has bodyRef && context.args.bodyRef.size > 1000};`, fetch, `{"url":"https://a.example/x","method":"POST","bodyRef":{"scheme":"file","path":"/b"}}`, "a"},
		{"no body by reference", `@id("a") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args has bodyRef && context.args.bodyRef.size > 1000};`, fetch, `{"url":"https://a.example/x","method":"POST","body":"b"}`, ""},
		{"fraction", `@id("a") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args has timeout && context.args.timeout.greaterThan(decimal("10.5"))};`, fetch, `{"url":"https://a.example/","timeout":10.75}`, "a"},
		{"smaller fraction", `@id("a") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args has timeout && context.args.timeout.greaterThan(decimal("10.5"))};`, fetch, `{"url":"https://a.example/","timeout":10.25}`, ""},
		{"fraction with too many digits", `@id("a") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args has timeout && context.args.timeout.greaterThan(decimal("10.5"))};`, fetch, `{"url":"https://a.example/","timeout":2.000001}`, "a"},
		{"evaluation errs", `@id("a") forbid(principal, action == Syscall::"Clock.Advance", resource) when {context.args.ticks * 9223372036854775807 > 1};`, "Clock.Advance", `{"ticks":5}`, "a"},
		{"the agent", `@id("a") forbid(principal == Agent::"worker", action == Syscall::"Memory.Set", resource);`, set, `{"key":"k","value":1}`, "a"},
		{"another agent", `@id("a") forbid(principal == Agent::"lead", action == Syscall::"Memory.Set", resource);`, set, `{"key":"k","value":1}`, ""},
		{"below an agent", `@id("a") forbid(principal in Agent::"lead", action == Syscall::"Memory.Set", resource);`, set, `{"key":"k","value":1}`, "a"},
		{"ancestors", `@id("a") forbid(principal, action == Syscall::"Memory.Set", resource) when {principal.ancestors.contains(Agent::"lead") && principal.pid == 8};`, set, `{"key":"k","value":1}`, "a"},
		{"forged key", `@id("a") forbid(principal, action == Syscall::"Memory.Set", resource) when {principal has key};`, set, `{"key":"k","value":1}`, ""},
		{"origin", `@id("a") forbid(principal, action == Syscall::"Memory.Set", resource == Origin::"os:///");`, set, `{"key":"k","value":1}`, "a"},
		{"tick and via", `@id("a") forbid(principal, action, resource) when {context.tick == 3 && context.via == "socket"};`, set, `{"key":"k","value":1}`, "a"},
		{"forbid before ask", `@id("a") @ask("1m") forbid(principal, action == Syscall::"Memory.Set", resource); @id("b") forbid(principal, action == Syscall::"Memory.Set", resource);`, set, `{"key":"k","value":1}`, "b"},
		{"the first of two", `@id("z") forbid(principal, action == Syscall::"Memory.Set", resource); @id("b") forbid(principal, action == Syscall::"Memory.Set", resource);`, set, `{"key":"k","value":1}`, "z"},
		{"tool", `@id("a") forbid(principal, action == Tool::"tools/sum", resource) when {context.input == "[1,2]"};`, "Syscall.Call", `{"syscall":"tools/sum","args":[1, 2]}`, "a"},
		{"tool as a syscall", `@id("a") forbid(principal, action == Syscall::"Syscall.Call", resource);`, "Syscall.Call", `{"syscall":"tools/sum"}`, "a"},
		{"tool of a host", `@id("a") forbid(principal, action == Tool::"claude/Bash", resource) when {context.args has command && context.args.command like "*rm -rf*"};`, use, `{"host":"claude","session":"s","tool":"Bash","input":{"command":"cd /\u0026\u0026 rm \u002drf \"x\""}}`, "a"},
		{"tool of another host", `@id("a") forbid(principal, action == Tool::"claude/Bash", resource);`, use, `{"host":"codex","session":"s","tool":"Bash","input":{"command":"ls"}}`, ""},
		{"tool of a host as a syscall", `@id("a") forbid(principal, action == Syscall::"Host.ToolUse", resource) when {context.args.tool == "Bash" && context.args has command && context.args.command == "[\"rm\",1]"};`, use, `{"host":"claude","session":"s","tool":"Bash","input":{"command":["rm",1.0]}}`, "a"},
		{"no command", `@id("a") forbid(principal, action == Tool::"claude/Read", resource) when {context.args has command};`, use, `{"host":"claude","session":"s","tool":"Read","input":"command"}`, ""},
		{"cut", `@id("a") forbid(principal, action == Tool::"claude/Bash", resource) when {context.args has command && context.args.command like "*rm -rf*"};`, use, `{"host":"claude","session":"s","tool":"Bash","input":{"command":"echo …"},"cut":["command"]}`, "a"},
		{"all cut", `@id("a") forbid(principal, action == Tool::"claude/Bash", resource) when {context.args has command && context.args.command like "*rm -rf*"};`, use, `{"host":"claude","session":"s","tool":"Bash","input":{"bytes":1,"sha256":"x"},"cut":["*"]}`, "a"},
		{"another member cut", `@id("a") forbid(principal, action == Tool::"claude/Write", resource) when {context.args has file_path && context.args.file_path like "/etc/*"};`, use, `{"host":"claude","session":"s","tool":"Write","input":{"file_path":"/home/a","content":"…"},"cut":["content"]}`, ""},
		{"input cut", `@id("a") forbid(principal, action == Tool::"claude/Write", resource) when {context.args.input like "*secret*"};`, use, `{"host":"claude","session":"s","tool":"Write","input":{"file_path":"/home/a","content":"…"},"cut":["content"]}`, "a"},
		{"registered", `@id("a") forbid(principal, action == Syscall::"Stripe.Charge", resource) when {context.args.data like "*\"amount\":5*"};`, "Syscall.Invoke", `{"name":"Stripe.Charge","kind":"command","data":{ "amount" : 5 }}`, "a"},
		{"program", `@id("a") forbid(principal, action == Program::"git", resource) when {context.args.argv.contains("push") && context.args.path == "/usr/bin/git" && context.args.cwd like "/srv/*"};`, exec, `{"path":"/usr/bin/git","argv":["git","push"],"cwd":"/srv/x"}`, "a"},
		{"program with other arguments", `@id("a") forbid(principal, action == Program::"git", resource) when {context.args.argv.contains("push")};`, exec, `{"path":"/usr/bin/git","argv":["git","pull"],"cwd":"/"}`, ""},
		{"another program", `@id("a") forbid(principal, action == Program::"git", resource);`, exec, `{"path":"/usr/bin/go","argv":["git"],"cwd":"/"}`, ""},
		{"every program", `@id("a") forbid(principal, action == Program::"*", resource) when {context.args.path like "/tmp/*"};`, exec, `{"path":"/tmp/x","argv":["x"],"cwd":"/"}`, "a"},
		{"every program but one", `@id("a") forbid(principal, action == Program::"*", resource) unless {action == Program::"git"}; @id("b") forbid(principal, action == Program::"git", resource);`, exec, `{"path":"/usr/bin/git","argv":["git"],"cwd":"/"}`, "b"},
		{"every call is no program", `@id("a") forbid(principal, action, resource); @id("b") forbid(principal, action == Program::"git", resource);`, exec, `{"path":"/usr/bin/go","argv":["go"],"cwd":"/"}`, ""},
		{"named by a tool", `@id("a") forbid(principal, action == Program::"git", resource) when {context.args.argv.contains("push") && context.via == "channel"};`, use, `{"host":"claude","session":"s","tool":"Bash","input":{"command":"cd x && git push"}}`, "a"},
		{"by its path", `@id("a") forbid(principal, action == Program::"*", resource) when {context.args.path like "/tmp/*"};`, use, `{"host":"claude","session":"s","tool":"Bash","input":{"command":"/tmp/x"}}`, "a"},
		{"its path is not known", `@id("a") forbid(principal, action == Program::"*", resource) unless {context.args.path like "/tmp/*"};`, use, `{"host":"claude","session":"s","tool":"Bash","input":{"command":"./x"}}`, ""},
		{"its directory is not known", `@id("a") forbid(principal, action == Program::"git", resource) unless {context.args.cwd == "/srv"};`, use, `{"host":"claude","session":"s","tool":"Bash","input":{"command":"git push"},"cwd":"/"}`, ""},
		{"its step is not known", `@id("a") forbid(principal, action == Program::"git", resource) unless {context.args has step};`, use, `{"host":"claude","session":"s","tool":"Bash","input":{"command":"git push"}}`, ""},
		{"a tool that names another", `@id("a") forbid(principal, action == Program::"git", resource);`, use, `{"host":"claude","session":"s","tool":"Bash","input":{"command":"cd git && go build"}}`, ""},
		{"forbidden before asked", `@id("b") @ask("1m") forbid(principal, action == Program::"go", resource); @id("a") forbid(principal, action == Program::"git", resource);`, use, `{"host":"claude","session":"s","tool":"Bash","input":{"command":"go build; git push"}}`, "a"},
		{"a program in a step", `@id("a") forbid(principal, action == Program::"git", resource) when {context.args has step && context.args.step like "x:*"};`, exec, `{"path":"/usr/bin/git","argv":["git"],"cwd":"/","step":"x:1"}`, "a"},
		{"a program in no step", `@id("a") forbid(principal, action == Program::"git", resource) unless {context.args has step};`, exec, `{"path":"/usr/bin/git","argv":["git"],"cwd":"/"}`, "a"},
		{"a program that cannot be read", `@id("a") forbid(principal == Agent::"other", action == Program::"git", resource);`, exec, `{"path":"","argv":[],"cwd":"","hidden":true}`, "a"},
		{"a program's arguments are cut", `@id("a") forbid(principal, action == Program::"git", resource) when {context.args.argv.contains("push")};`, exec, `{"path":"/usr/bin/git","argv":["git"],"cwd":"/","cut":true}`, "a"},
		{"cut arguments, nobody asks", `@id("a") forbid(principal, action == Program::"git", resource) when {context.args.cwd == "/x"};`, exec, `{"path":"/usr/bin/git","argv":["git"],"cwd":"/","cut":true}`, ""},
		{"another registered", `@id("a") forbid(principal, action == Syscall::"Stripe.Charge", resource);`, "Syscall.Invoke", `{"name":"Stripe.Refund","kind":"command","data":{}}`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rules := strings.ReplaceAll(test.rules, "context.input", "context.args.input")
			d := judge(compile(t, rules)).Decide(call(t, 8, test.typ, test.data))
			got := ""
			if d.Rule != nil {
				got = d.Rule.ID
			}
			if got != test.want {
				t.Errorf("decided by %q, want %q (%v)", got, test.want, d.Failed)
			}
		})
	}
}

// TestFails: the decision has the error of a rule whose evaluation fails, and a rule that forbids takes precedence.
func TestFails(t *testing.T) {
	t.Parallel()
	const errs = `@id("errs") forbid(principal, action == Syscall::"Clock.Advance", resource) when {context.args.ticks * 9223372036854775807 > 1};`
	const forbids = `@id("forbids") forbid(principal, action, resource);`
	c := call(t, 8, "Clock.Advance", `{"ticks":5}`)
	if d := judge(compile(t, errs)).Decide(c); d.Failed == nil || d.Rule.ID != "errs" {
		t.Errorf("%+v, want the rule and why it failed", d)
	}
	if d := judge(compile(t, errs+forbids)).Decide(c); d.Failed != nil || d.Rule.ID != "forbids" {
		t.Errorf("%+v, want the rule that forbids", d)
	}
}

// TestCheck: errors in rules are reported with file and line.
func TestCheck(t *testing.T) {
	t.Parallel()
	const head = `forbid(principal, action == Syscall::"Memory.Set", resource)`
	for name, test := range map[string]struct{ rules, want string }{
		"no Cedar":                 {"\nforbid(principal", "policy.cedar:2: "},
		"permit":                   {`permit(principal, action, resource);`, "policy.cedar:1: permit is not used here"},
		"unknown syscall":          {"\n\n" + `forbid(principal, action == Syscall::"Memory.Sett", resource);`, `policy.cedar:3: the rule can never match: no syscall Memory.Sett; did you mean Memory.Set?`},
		"alias":                    {`forbid(principal, action == Syscall::"Sys.Describe", resource);`, "Sys.Describe is another name of Syscall.Describe"},
		"internal":                 {`forbid(principal, action == Syscall::"Kernel.Booted", resource);`, "no syscall Kernel.Booted"},
		"path of a program":        {`forbid(principal, action == Program::"/usr/bin/git", resource);`, `"/usr/bin/git" must be the last part of a program's path, such as git, or * for all programs`},
		"program as a syscall":     {`forbid(principal, action == Syscall::"Program.Exec", resource);`, `name the program, such as Program::"git"`},
		"a program's step is text": {`forbid(principal, action == Program::"git", resource) when {context.args has step && context.args.step == 1};`, `Long and String`},
		"a step may be absent":     {`forbid(principal, action == Program::"git", resource) when {context.args.step == "x:1"};`, `step`},
		"program without argument": {`forbid(principal, action == Program::"git", resource) when {context.args.key == "x"};`, `key`},
		"unknown in a body":        {`forbid(principal, action, resource) when {action == Syscall::"Memory.Sett"};`, "did you mean Memory.Set?"},
		"unknown argument":         {head + ` when {context.args.kee == "a"};`, "kee"},
		"wrong type":               {head + ` when {context.args.key == 1};`, "policy.cedar:1: "},
		"no guard":                 {`forbid(principal, action == Syscall::"Memory.List", resource) when {context.args.prefix == "a"};`, "prefix"},
		"dead":                     {head + ` when {context.args has kee};`, "the rule can never match"},
		"dead unless":              {head + ` unless {context.args has key};`, "the rule can never match"},
		"dead by action":           {head + ` when {action in Syscall::"Memory.Get"};`, "the rule can never match"},
		"action out of head":       {`forbid(principal, action, resource) when {action == Syscall::"Memory.Set" && context.args.key == "a"};`, "name its actions in its head"},
		"action in when":           {head + ` when {action == Syscall::"Memory.Get"};`, "the rule can never match"},
		"two actions":              {`forbid(principal, action, resource) when {action == Syscall::"Memory.Get" && action == Syscall::"Memory.Set"};`, "the rule can never match"},
		"none of several":          {`forbid(principal, action in [Syscall::"Memory.Get", Syscall::"Memory.Set"], resource) unless {[Syscall::"Memory.Get", Syscall::"Memory.Set"].contains(action)};`, "the rule can never match"},
		"two keys":                 {head + ` when {context.args.key == "a"} when {context.args.key == "b" || context.args.key == "c"};`, "the rule can never match"},
		"key and pattern":          {head + ` when {context.args.key == "a" && context.args.key like "b*"};`, "the rule can never match"},
		"two agents":               {`forbid(principal == Agent::"a", action == Syscall::"Memory.Set", resource) unless {principal in Agent::"a"};`, "the rule can never match"},
		"two origins":              {`forbid(principal, action, resource == Origin::"os:///") when {resource in [Origin::"a", Origin::"b"]};`, "the rule can never match"},
		"numbers":                  {`forbid(principal, action == Syscall::"Clock.Advance", resource) when {context.args.ticks > 3 && !(context.args.ticks >= 2 && 1 < context.args.ticks)};`, "the rule can never match"},
		"beyond its bound":         {`forbid(principal, action == Syscall::"Memory.List", resource) when {context.args has limit && context.args.limit < 0};`, "the rule can never match"},
		"none of its words":        {`forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args.method == "get"};`, "the rule can never match"},
		"other type":               {head + ` when {principal is Origin};`, "the rule can never match"},
		"by a choice":              {head + ` when {if context.args.key == "a" then context.args.key == "b" else context.args.key == "a"};`, "the rule can never match"},
		"host":                     {`forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args.host == "API.example.com"};`, `compared in lower case, as "api.example.com"`},
		"key with a slash":         {head + ` when {context.args.key like "/prod/*"};`, `compared without their leading slash, as "prod/*"`},
		"exhausted":                {head + ` when {context.exhausted == "call"};`, "context.exhausted is \"\" or one of calls, "},
		"via":                      {head + ` when {context.via == "sockets"};`, "context.via is one of socket, "},
		"all of args":              {head + ` when {context.args == {key: "a"}};`, "instead of the whole of it"},
		"twice":                    {`@id("a") ` + head + ";\n" + `@id("a") ` + head + ";", `policy.cedar:2: the rule at policy.cedar:1 has the same name, "a"`},
		"ask":                      {`@ask("soon") ` + head + ";", `@ask("soon") must be the time`},
		"annotation":               {`@fixx("x") ` + head + ";", "@fixx has no meaning"},
		"no resource":              {`forbid(principal, action, resource == Folder::"a");`, "Folder"},
		"tool":                     {`forbid(principal, action == Tool::"os/tools/sum", resource);`, "must be a path below root"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, problems := policy.Compile([]policy.File{{Name: "policy.cedar", Text: []byte(test.rules)}})
			if set != nil || len(problems) == 0 {
				t.Fatalf("the rules were accepted: %v", problems)
			}
			if !strings.Contains(fmt.Sprint(problems), test.want) {
				t.Errorf("%v, want %s", problems, test.want)
			}
		})
	}
}

// TestWarnings: a rule about an unknown name is accepted with a warning.
func TestWarnings(t *testing.T) {
	t.Parallel()
	set, problems := policy.Compile([]policy.File{{Name: "a.cedar", Text: []byte(`forbid(principal, action == Tool::"tools/sum", resource);
forbid(principal, action == Syscall::"Stripe.Charge", resource);`)}})
	if set == nil || len(problems) != 2 || !problems[0].Warning || !problems[1].Warning || problems[1].Line != 2 {
		t.Errorf("%v", problems)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1, 50} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "@id(\"r%d\") forbid(principal, action == Syscall::\"Memory.Set\", resource) when {context.args.key like \"prod%d/*\"};\n", i, i)
		}
		j := judge(compile(b, text.String()))
		c := call(b, 8, "Memory.Set", `{"key":"notes/1","value":{"a":1}}`)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if j.Decide(c).Rule != nil {
					b.Fatal("denied")
				}
			}
		})
	}
}

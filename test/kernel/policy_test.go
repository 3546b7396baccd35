package kernel_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// ruled configures a daemon with rules in the directory of its configuration.
func ruled(t *testing.T, files map[string]string) func(*config.Config) {
	t.Helper()
	return func(cfg *config.Config) {
		cfg.File = filepath.Join(filepath.Dir(cfg.RuntimeDir), "config", "config.toml")
		writeRules(t, cfg, files)
	}
}

func writeRules(t *testing.T, cfg *config.Config, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(filepath.Dir(cfg.File), name)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

const noProd = `@id("no-prod") @fix("write below test/")
forbid(principal, action in [Syscall::"Memory.Set", Syscall::"Memory.CompareAndSet"], resource) when {context.args.key like "prod/*"};
`

// everySpelling returns all spellings of the same call, which is judged in each of them.
func everySpelling() map[string]func(c *client) answer {
	of := func(typ, data string) func(*client) answer { return func(c *client) answer { return c.ask(typ, data) } }
	return map[string]func(*client) answer{
		"as it is":           of("Memory.Set", `{"key":"prod/x","value":1}`),
		"with a slash":       of("Memory.Set", `{"key":"/prod/x","value":1}`),
		"with an escape":     of("Memory.Set", `{"key":"pro\u0064\/x","value":1}`),
		"another order":      of("Memory.Set", `{"value":1,"key":"prod/x"}`),
		"naming itself":      func(c *client) answer { return c.ask("Memory.Set", `{"pid":1,"key":"prod/x","value":1}`) },
		"by reference":       of("Memory.Set", `{"key":"prod/x","valueRef":{"scheme":"data","path":"application/json,[1]"}}`),
		"with the old value": of("Memory.CompareAndSet", `{"key":"prod/x","value":1}`),
		"by a short name":    of("Syscall.Call", `{"syscall":"memory","args":["set","prod/x",1]}`),
		"an OsEvent": func(c *client) answer {
			return c.speak(schema.OsEvent, "Memory.Set", `{"key":"/prod/x","value":1}`, "")
		},
		"a short name in it": func(c *client) answer {
			return c.speak(schema.OsEvent, "Syscall.Call", `{"syscall":"memory","args":["set","prod/x",1]}`, "")
		},
	}
}

// TestPolicy: a rule refuses the call in every spelling; the error has its name and its advice, and the journal its name.
// The operator is exempt, unless it acts as an agent, and gets the place of the rule.
func TestPolicy(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.d/10.cedar": noProd}))
	operator, agent := d.dial(t), d.dial(t)
	pid := agent.attach("worker", `,"capabilities":{"allowed_syscalls":["*"]}`)
	for name, call := range everySpelling() {
		a := call(agent)
		f := agent.failure(a)
		if (f.Code != 403.0 && f.Code != "UNAUTHORIZED") || !strings.Contains(f.Message, `the rule "no-prod" forbids`) || !strings.Contains(f.Message, "write below test/") {
			t.Errorf("%s: %+v", name, f)
		}
		if strings.Contains(f.Message, ".cedar") {
			t.Errorf("%s: the agent's error has the place of the rule: %s", name, f.Message)
		}
	}
	agent.call("Memory.Set", `{"key":"test/x","value":1}`, nil)
	operator.call("Memory.Set", `{"key":"prod/x","value":1}`, nil)
	operator.refused(403, "Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"prod/x","value":1}`, pid), `"no-prod"`, "policy.d/10.cedar:1")

	for _, c := range []*client{operator, agent} { // an agent's own log does not show the place of rules
		log := string(c.ask("Audit.Log", fmt.Sprintf(`{"pid":%d}`, pid)).Data)
		if got, want := strings.Contains(log, `forbids this Memory.Set (policy.d/10.cedar:1)`), c == operator; got != want || !strings.Contains(log, `forbids this Memory.Set`) {
			t.Errorf("the journal shows the place of the rule: %v, want %v: %s", got, want, log)
		}
	}
	var shown schema.PolicyShowOutput
	operator.call("Policy.Show", `{}`, &shown)
	if want := int64(len(everySpelling()) + 1); len(shown.Rules) != 1 || shown.Rules[0].Decided != want {
		t.Errorf("%+v, want %d calls decided by one rule", shown, want)
	}
	agent.refused(403, "Policy.Show", `{}`)
	agent.refused(403, "Policy.Reload", `{}`)
	d.stop()
	if text := d.journal(t); !strings.Contains(text, `"error":"policy.denied"`) ||
		!strings.Contains(text, fmt.Sprintf(`"rule":"no-prod","policy":%q`, shown.Hash)) || !strings.Contains(text, `"type":"Policy.Loaded"`) {
		t.Errorf("the journal does not have the rule that decided:\n%s", text)
	}
}

// journal returns the text of all segments.
func (d *running) journal(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	segments, err := filepath.Glob(filepath.Join(d.cfg.StateDir, "journal", "*"))
	testkit.Must(t, err)
	for _, name := range segments {
		text, err := os.ReadFile(name)
		testkit.Must(t, err)
		all.Write(text)
	}
	return all.String()
}

// TestPolicyAndRegistered: a registered syscall is judged by its own name, and so are the calls that its provider makes for
// the caller.
func TestPolicyAndRegistered(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": noProd + `@id("no-large") forbid(principal, action == Syscall::"Store.Large", resource) when {context.args.data like "*\"large\":true*"};`}))
	caller, provider, worker, other := d.dial(t), d.dial(t), d.dial(t), d.dial(t)
	const may = `,"capabilities":{"allowed_syscalls":["*","Syscall.Register"]}`
	provider.attach("provider", may)
	worker.attach("provider", "") // the same process: it calls while its first connection provides
	other.attach("other", may)
	provider.provide("Store.Put", func(asked) string {
		f := worker.failure(worker.ask("Memory.Set", `{"key":"/prod/x","value":1}`))
		return fmt.Sprintf(`"error":{"code":403,"message":%q}`, f.Message)
	})
	other.provide("Store.Large", func(asked) string { return `"data":1` })
	caller.attach("caller", `,"capabilities":{"allowed_syscalls":["*","Store.Put","Store.Large"]}`)
	if f := caller.failure(caller.use(schema.OsMessage, "Store.Put", `{}`)); !strings.Contains(f.Message, `"no-prod`) {
		t.Errorf("through a provider: %+v", f)
	}
	if f := caller.failure(caller.use(schema.OsMessage, "Store.Large", `{ "large" : true }`)); !strings.Contains(f.Message, `"no-large" forbids this Store.Large`) {
		t.Errorf("by its own name: %+v", f)
	}
	if a := caller.use(schema.OsMessage, "Store.Large", `{"large":false}`); a.Kind != "reply" {
		t.Errorf("what no rule forbids: %s", a.Data)
	}
}

// TestPolicyOfNames: names of resources, tools and addresses are judged in the form in which they are used.
func TestPolicyOfNames(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": `
@id("no-secret") forbid(principal, action in [Syscall::"FileSystem.Resolve", Syscall::"Kernel.Ingest"], resource) when {context.args.uri like "os:///secret/*"};
@id("no-hydrate") forbid(principal, action == Syscall::"FileSystem.Hydrate", resource) when {context.args has uri && context.args.uri like "os:///secret/*"};
@id("no-tool") forbid(principal, action == Tool::"tools/sum", resource);
@id("no-host") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args.host == "evil.example"};
@id("no-path") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args.url like "https://good.example/private*"};
@id("no-body") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args has body && context.args.body like "*secret*"};
`}), func(cfg *config.Config) {
		cfg.Root = filepath.Join(filepath.Dir(cfg.StateDir), "root")
		testkit.Must(t, os.MkdirAll(filepath.Join(cfg.Root, "os", "tools"), 0o700))
	})
	operator, c := d.dial(t), d.dial(t)
	operator.call("Syscall.Register", `{"name":"Sum.Add","kind":"query","input":{},"path":"os/tools/sum"}`, nil)
	c.attach("worker", `,"capabilities":{"allowed_syscalls":["*","Sum.Add"],"http":{"hosts":["*"],"plain":true}}`)
	secret := base64.StdEncoding.EncodeToString([]byte("a secret"))
	for _, one := range []struct{ rule, typ, data string }{
		{"no-secret", "FileSystem.Resolve", `{"uri":"os:///secret/a"}`},
		{"no-secret", "FileSystem.Resolve", `{"uri":"secret/a"}`},
		{"no-secret", "FileSystem.Resolve", `{"uri":"OS:///secret/a"}`},
		{"no-secret", "FileSystem.Resolve", `{"uri":"os:///%73ecret/a"}`},
		{"no-secret", "FileSystem.Resolve", `{"uri":"./a","base":"os:///secret/b"}`},
		{"no-secret", "FileSystem.Resolve", `{"uri":"../secret/a","base":"os:///other/b"}`},
		{"no-secret", "Kernel.Ingest", `{"uri":"secret/a"}`},
		{"no-hydrate", "FileSystem.Hydrate", `{"uri":"secret/a"}`},
		{"no-tool", "Syscall.Call", `{"syscall":"os/tools/sum","args":[1]}`},
		{"no-tool", "Syscall.Call", `{"syscall":"os:///tools/sum"}`},
		{"no-tool", "Syscall.Call", `{"syscall":"os/tools/%73um"}`},
		{"no-tool", "Syscall.Call", `{"syscall":"os/tools/sum","describe":true}`},
		{"no-host", "Http.Fetch", `{"url":"https://evil.example/"}`},
		{"no-host", "Http.Fetch", `{"url":"HTTPS://EVIL.example:443/a"}`},
		{"no-host", "Http.Fetch", `{"url":"http://evil.example./"}`},
		{"no-path", "Http.Fetch", `{"url":"https://GOOD.example:443/private/a"}`},
		{"no-body", "Http.Fetch", `{"url":"https://good.example/","method":"POST","body":"a secret"}`},
		{"no-body", "Http.Fetch", `{"url":"https://good.example/","method":"POST","bodyRef":{"scheme":"data","path":";base64,` + secret + `"}}`},
	} {
		a := c.ask(one.typ, one.data)
		if a.Kind == "reply" {
			t.Errorf("%s %s: accepted", one.typ, one.data)
			continue
		}
		f := c.failure(a)
		if strings.Contains(f.Message, fmt.Sprintf("the rule %q", one.rule)) {
			continue
		}
		// A spelling that the handler refuses cannot evade a rule.
		if f.Code != 422.0 {
			t.Errorf("%s %s: %+v, want the rule %s", one.typ, one.data, f, one.rule)
		}
		t.Logf("%s %s is no spelling: %s", one.typ, one.data, f.Message)
	}
	if f := c.failure(c.use(schema.OsMessage, "Sum.Add", `[1]`)); !strings.Contains(f.Message, `"no-tool"`) {
		t.Errorf("a tool as a registered syscall: %+v", f)
	}
}

// TestPolicyInvalid: with invalid files no agent is served. The operator is; it corrects them, and loads them.
func TestPolicyInvalid(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": noProd, "policy.d/20.cedar": "\nforbid(principal, action == Syscall::\"Memory.Sett\", resource);"}))
	operator, agent := d.dial(t), d.dial(t)
	const pid = 1
	if a := agent.ask("Process.Attach", `{"agent_id":"worker","capabilities":{"allowed_syscalls":["*"]}}`); a.Kind != "reply" {
		t.Fatalf("attach: %s", a.Data)
	}
	agent.refused(403, "Memory.Set", `{"key":"test/x","value":1}`, "the policy of this kernel is not valid")
	agent.refused(403, "Syscall.Ping", `{"payload":1}`, "not valid")
	operator.call("Memory.Set", `{"key":"prod/x","value":1}`, nil)
	var shown schema.PolicyShowOutput
	operator.call("Policy.Show", `{}`, &shown)
	if !strings.HasPrefix(shown.Invalid, "policy.d/20.cedar:2: ") {
		t.Errorf("%+v", shown)
	}
	operator.refused(403, "Policy.Reload", `{}`, "policy.d/20.cedar:2: ", "did you mean Memory.Set?")
	agent.refused(403, "Memory.Set", `{"key":"test/x","value":1}`, "not valid")
	writeRules(t, &d.cfg, map[string]string{"policy.d/20.cedar": ""})
	var loaded schema.PolicyReloadOutput
	operator.call("Policy.Reload", `{}`, &loaded)
	if loaded.Rules != 1 || len(loaded.Files) != 2 || loaded.Hash == "" {
		t.Errorf("%+v", loaded)
	}
	agent.call("Memory.Set", `{"key":"test/x","value":1}`, nil)
	agent.refused(403, "Memory.Set", `{"key":"prod/x","value":1}`, "no-prod")

	// One invalid file leaves everything unchanged.
	writeRules(t, &d.cfg, map[string]string{"policy.cedar": "permit(principal, action, resource);", "policy.d/20.cedar": `forbid(principal, action, resource);`})
	operator.refused(403, "Policy.Reload", `{}`, "policy.cedar:1: permit is not used here")
	agent.call("Memory.Set", `{"key":"test/x","value":1}`, nil)
	agent.refused(403, "Memory.Set", `{"key":"prod/x","value":1}`, "no-prod")

	// Without files there is no policy.
	testkit.Must(t, os.RemoveAll(filepath.Dir(d.cfg.File)))
	operator.call("Policy.Reload", `{}`, nil)
	operator.call("Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"prod/x","value":1}`, pid), nil)
}

// TestPolicyFails: a rule that cannot be evaluated refuses.
func TestPolicyFails(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": `@id("errs") forbid(principal, action == Syscall::"Clock.Advance", resource) when {context.args.ticks * 9223372036854775807 > 1};`}))
	c := d.dial(t)
	c.attach("worker", `,"capabilities":{"allowed_syscalls":["*"]}`)
	c.refused(403, "Clock.Advance", `{"ticks":2}`, `"errs" cannot be evaluated`)
}

// TestPolicyOfJobs: the call of a job is judged when it is made, as its owner's.
func TestPolicyOfJobs(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": noProd + `@id("no-job") forbid(principal, action == Syscall::"Memory.Delete", resource) when {context.via == "job"};`}))
	follower, agent := d.follow(t), d.dial(t)
	agent.attach("worker", `,"capabilities":{"allowed_syscalls":["*"]}`)
	agent.call("Memory.Set", `{"key":"k","value":1}`, nil)
	for payload, rule := range map[string]string{
		`{"name":"Memory.Set","payload":{"key":"/prod/x","value":1}}`: "no-prod", `{"name":"Memory.Delete","payload":{"key":"k"}}`: "no-job",
	} {
		job := agent.begin(payload)
		follower.told("Job.Started", job)
		if s := follower.told("Job.Failed", job); s.ErrorID != "policy.denied" || !strings.Contains(s.Error, rule) {
			t.Errorf("%s: %+v, want the rule %s", payload, s, rule)
		}
	}
	agent.call("Memory.Delete", `{"key":"k"}`, nil)
}

// TestPolicyVia: the operator names the door of a connection when it attaches; an agent cannot.
func TestPolicyVia(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": `@id("hook-only") forbid(principal, action == Syscall::"Memory.Set", resource) unless {context.via == "hook"};`}))
	const write, may = `{"key":"k","value":1}`, `,"capabilities":{"allowed_syscalls":["*"]}`
	hook, agent := d.dial(t), d.dial(t)
	hook.refused(422, "Process.Attach", `{"agent_id":"worker","via":"socket"}`, "via")
	hook.attach("worker", may+`,"via":"hook"`)
	hook.call("Memory.Set", write, nil)
	agent.attach("worker", may)
	agent.refused(403, "Memory.Set", write, "hook-only")
	agent.refused(403, "Process.Attach", `{"agent_id":"worker","via":"hook"}`)
	agent.refused(403, "Memory.Set", write, "hook-only")
	d.restart(t)
	again := d.dial(t) // with the name of an earlier connection
	again.attach("worker", "")
	again.refused(403, "Memory.Set", write, "hook-only")
}

// TestPolicyOfProfiles: a rule for a profile applies to what the operator runs with it, and to all descendants. Other
// processes can neither enter nor leave it by their own descriptor.
func TestPolicyOfProfiles(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"profiles/own.cedar": `@id("own") forbid(principal in Profile::"own", action == Syscall::"Memory.Set", resource);`}))
	operator := d.dial(t)
	spawn := func(by int64, name, intent string) int64 {
		var out schema.SpawnOutput
		operator.call("Syscall.Spawn", fmt.Sprintf(`{"pid":%d,"child_agent_id":%q,"intent":%q,"capabilities":{"allowed_syscalls":["Memory.*","Syscall.Spawn"]}}`, by, name, intent), &out)
		return out.ChildPID
	}
	under, other := spawn(0, "under", "profile:own"), spawn(0, "other", "profile:owner")
	for pid, refused := range map[int64]bool{
		under: true, spawn(under, "child", ""): true, spawn(under, "leaver", "profile:other"): true,
		other: false, spawn(other, "child", "profile:own"): false,
	} {
		a := operator.ask("Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"a","value":1}`, pid))
		if (a.Kind == "error") != refused || refused && !strings.Contains(string(a.Data), `\"own\"`) {
			t.Errorf("pid %d: %s", pid, a.Data)
		}
	}
}

// TestPolicyAndProviders: a rule for every syscall applies to the call of a registered one, and not to its provider's
// answer, since the call was already made.
func TestPolicyAndProviders(t *testing.T) {
	t.Parallel()
	d := start(t, ruled(t, map[string]string{"policy.cedar": `@id("none") forbid(principal == Agent::"provider", action, resource) when {context.tick > 0};`}))
	operator, caller, provider := d.dial(t), d.dial(t), d.dial(t)
	pid := provider.attach("provider", `,"capabilities":{"allowed_syscalls":["Syscall.Register"]}`)
	provider.provide("Store.Put", func(asked) string { return `"data":1` })
	caller.attach("caller", `,"capabilities":{"allowed_syscalls":["Store.Put"]}`)
	operator.call("Clock.Advance", `{"ticks":1}`, nil)
	if a := caller.use(schema.OsMessage, "Store.Put", `{}`); string(a.Data) != "1" {
		t.Errorf("answers %s", a.Data)
	}
	var log schema.AuditLogOutput
	for len(log.Entries) == 0 { // it may follow the caller's answer
		operator.call("Audit.Log", fmt.Sprintf(`{"pid":%d,"type":"Syscall.Complete"}`, pid), &log)
	}
	if len(log.Entries) != 1 || !log.Entries[0].Success {
		t.Errorf("the call is recorded as %+v", log.Entries)
	}
	writeRules(t, &d.cfg, map[string]string{"policy.cedar": `forbid(principal, action == Syscall::"Syscall.Complete", resource);`})
	operator.refused(403, "Policy.Reload", `{}`, "policy.cedar:1: the rule can never match: Syscall.Complete is a provider's answer")
}

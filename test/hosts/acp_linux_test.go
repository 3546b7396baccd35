package hosts_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// speak starts pwos acp, and a session in the project.
func (p *place) speak(args ...string) (c *acp, offered object, end func()) {
	p.t.Helper()
	cmd := p.command(p.t.Context(), "pwos", append([]string{"acp"}, args...)...)
	said := new(strings.Builder)
	cmd.Stderr = said
	c = &acp{t: p.t}
	var err error
	c.in, err = cmd.StdinPipe()
	testkit.Must(p.t, err)
	out, err := cmd.StdoutPipe()
	testkit.Must(p.t, err)
	c.out = bufio.NewReader(out)
	testkit.Must(p.t, cmd.Start())
	p.t.Cleanup(func() { p.t.Logf("%s", said) })
	offered = c.request("initialize", object{"protocolVersion": 1, "clientCapabilities": object{"fs": object{"readTextFile": true, "writeTextFile": true}, "terminal": true}})()
	return c, offered, func() {
		p.t.Helper()
		testkit.Must(p.t, c.in.Close())
		_, err := io.Copy(io.Discard, c.out)
		if err := errors.Join(err, cmd.Wait()); err != nil {
			p.t.Errorf("it ended with %v: %s", err, said)
		}
	}
}

// fake declares acpHost, and returns how it is started, under a name.
func (p *place) fake(name string, flags ...string) []string {
	p.t.Helper()
	self, err := os.Executable()
	testkit.Must(p.t, err)
	testkit.Must(p.t, os.WriteFile(p.Path(name+".toml"), []byte("name = \"fake\"\n[acp]\nargs = [\"t-acp\"]\n[tools]\nrun = [\"sh\"]\nwrite = [\"put\"]\n"), 0o600))
	return append(append([]string{"--preset", p.Path(name + ".toml"), "--name", name}, flags...), self)
}

// session starts a session.
func (c *acp) session(dir string) any {
	c.t.Helper()
	return c.request("session/new", object{"cwd": dir, "mcpServers": []any{}})()["sessionId"]
}

// prompt sends a prompt, and returns the function that waits for its end.
func (c *acp) prompt(session any, text string) func() object {
	c.t.Helper()
	return c.request("session/prompt", object{"sessionId": session, "prompt": []any{object{"type": "text", "text": text}}})
}

// do has acpHost do something.
func (c *acp) do(d doing) object {
	c.t.Helper()
	what, err := json.Marshal(d)
	testkit.Must(c.t, err)
	return c.prompt("s", string(what))()
}

// permit is a request for permission of acpHost.
func permit(id int, kind, command string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t%d","title":"x","kind":"%s","rawInput":{"command":"%s"}},`+
		`"options":[{"optionId":"yes","name":"x","kind":"allow_once"},{"optionId":"no","name":"x","kind":"reject_once"}]}}`, id, id, kind, command)
}

// chosen returns the options with which requests for permission were answered, by their ids.
func chosen(result object) map[any]any {
	all := map[any]any{}
	for _, one := range list(result["heard"]) {
		one := one.(object)
		all[one["id"]] = "error"
		if result, ok := one["result"].(object); ok {
			outcome := result["outcome"].(object)
			if all[one["id"]] = outcome["optionId"]; outcome["optionId"] == nil {
				all[one["id"]] = outcome["outcome"]
			}
		}
	}
	return all
}

// hostile is what an agent does that wants to get out by its editor, or past it.
func hostile(home string) doing {
	d := doing{Run: "echo by hand >>" + home + "/.bashrc; ln -s " + home + " way; echo by link >>way/.bashrc; cat " + home + "/.ssh/secret; cat .env; echo inside >inside; true"}
	at := func(id int, method, params string) {
		d.Write = append(d.Write, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}`, id, method, params))
		d.Answers++
	}
	at(1, "fs/write_text_file", `{"sessionId":"s","path":"`+home+`/.bashrc","content":"by the editor"}`)
	at(2, "fs/read_text_file", `{"sessionId":"s","path":"`+home+`/.ssh/secret"}`)
	at(3, "terminal/create", `{"sessionId":"s","command":"sh","args":["-c","echo by a terminal >>`+home+`/.bashrc"],"cwd":"`+home+`"}`)
	at(4, "_zed/run", `{"command":"sh"}`)
	d.Write = append(
		d.Write, "garbage", `{"jsonrpc":"2.0","id":5,"meth`, `[{"jsonrpc":"2.0","id":6,"method":"terminal/create","params":{"command":"sh"}}]`,
		`{"jsonrpc":"2.0","id":7,"method":"session/update","method":"terminal/create","params":{"command":"sh"}}`,
		`{"jsonrpc":"2.0","method":"fs/write_text_file","params":{"path":"`+home+`/.bashrc","content":"by a notice"}}`,
		"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":[1,\r{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"terminal/create\",\"params\":{\"command\":\"sh\"}}\r]}}",
	)
	for id := range 60 {
		d.Write = append(d.Write, permit(100+id, "edit", "x"), fmt.Sprintf(`{"jsonrpc":"2.0","id":"pwos-%d","result":{"outcome":{"outcome":"selected","optionId":"once"}}}`, id), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, 1000+id))
		d.Answers++
	}
	return d
}

// TestACPHostile: a file is not written by the editor for an agent, nor by a terminal of the editor's, a server of the agent's or by
// itself, wherever the agent may not write: 50 agents that try it all at once get nothing.
func TestACPHostile(t *testing.T) {
	t.Parallel()
	p := newPlaceAt(t, "")
	home := p.Path("home")
	testkit.Must(t, errors.Join(
		os.WriteFile(home+"/.bashrc", []byte("mine\n"), 0o600), os.Mkdir(home+"/.ssh", 0o700), os.WriteFile(home+"/.ssh/secret", []byte("canary"), 0o600),
	))
	all := 50
	if testing.Short() {
		all = 3
	}
	places := make(chan int, 4) // the others wait in their editors
	var agents sync.WaitGroup
	for i := range all {
		dir := p.Path(fmt.Sprintf("project/%d", i))
		testkit.Must(t, errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(dir+"/.env", []byte("canary"), 0o600)))
		args := p.fake(fmt.Sprintf("hostile-%d", i), "--dir", dir, "--ask", "--allow", "Tool:fake/sh")
		agents.Go(func() {
			places <- i
			c, offered, end := p.speak(args...)
			<-places
			defer end()
			if text := fmt.Sprint(offered); strings.Contains(text, "touch") || !strings.Contains(text, "terminal:false") || !strings.Contains(text, "writeTextFile:false") {
				t.Errorf("the host hears and offers %s", text)
			}
			c.session(dir)
			result := c.do(hostile(home))
			for id, option := range chosen(result) {
				if option != "no" && option != "error" {
					t.Errorf("%v is answered with %v", id, option)
				}
			}
			if out := text(result["out"]); strings.Contains(out, "canary") || len(c.asked) > 0 {
				t.Errorf("it reads %s, and the editor is asked %v", out, c.asked)
			}
			if _, err := os.Stat(dir + "/inside"); err != nil {
				t.Error(err)
			}
		})
	}
	agents.Wait()
	if got := testkit.ReadFile(t, home+"/.bashrc"); got != "mine\n" {
		t.Errorf("the user's file is now %q", got)
	}
	if _, err := os.Stat("/pwned"); err == nil {
		t.Error("an editor has run what an agent offered")
	}
	p.idle()
}

// TestACPGate: what a host asks permission for, the kernel decides: by what is granted, by its rules, and by a person, in the editor where
// that may answer. A session elsewhere is refused, and an editor that is killed leaves nothing.
func TestACPGate(t *testing.T) {
	t.Parallel()
	p := newPlaceAt(t, "")
	testkit.Must(t, errors.Join(os.MkdirAll(p.Path("home/.config/pwos"), 0o700), os.WriteFile(p.Path("home/.config/pwos/policy.cedar"), []byte(
		`@id("pushes") @ask("30m") forbid(principal, action == Syscall::"Host.ToolUse", resource) when {context.args.input like "*push*"};`), 0o600)))
	in := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%q}}`, p.Path("home"))
	allow := []string{"--allow", "Tool:fake/sh"}

	c, _, end := p.speak(p.fake("asker", append(allow, "--ask")...)...)
	testkit.Must(t, errors.Join(json.NewEncoder(c.in).Encode(json.RawMessage(in))))
	if line, err := c.out.ReadString('\n'); err != nil || !strings.Contains(line, "-32602") || !strings.Contains(line, "--dir") {
		t.Errorf("a session elsewhere: %s, %v", line, err)
	}
	session := c.session(p.Path("project"))
	result := c.do(doing{Write: []string{permit(1, "execute", "ls"), permit(2, "edit", "x")}, Answers: 2})
	if got := chosen(result); got[1.0] != "yes" || got[2.0] != "no" || len(c.asked) > 0 {
		t.Errorf("without a question: %v, and the editor is asked %v", got, c.asked)
	}
	if !strings.Contains(fmt.Sprint(result), "Tool:fake/put") {
		t.Errorf("it does not hear how it is allowed: %v", result)
	}
	for option, want := range map[string]string{"once": "yes", "refuse": "no"} {
		c.asked, c.choose = nil, func(object) string { return option }
		if got := chosen(c.do(doing{Write: []string{permit(3, "execute", "push "+option)}, Answers: 1})); got[3.0] != want || len(c.asked) != 1 {
			t.Errorf("%s in the editor: %v, asked %v", option, got, c.asked)
		}
	}
	// A question that is answered elsewhere is over, and what the editor answers later decides nothing.
	c.asked, c.choose = nil, func(object) string { return "" }
	wait := c.prompt(session, `{"Write":[`+string(must(json.Marshal(permit(4, "execute", "push late"))))+`],"Answers":1}`)
	go func() {
		await(t, "it is asked", func() bool { return strings.Contains(p.run("pwos", "approvals"), `"state":"waiting"`) })
		p.run("pwos", "refuse", strings.Split(strings.Split(p.run("pwos", "approvals"), `"id":"`)[1], `"`)[0])
	}()
	if got := chosen(wait()); got[4.0] != "no" || len(c.asked) != 1 {
		t.Errorf("refused elsewhere: %v, asked %v", got, c.asked)
	}
	c.send(object{"id": c.asked[0]["id"], "result": object{"outcome": object{"outcome": "selected", "optionId": "hour"}}})
	c.do(doing{})
	if got := p.run("pwos", "approvals", "--all"); strings.Count(got, `"state":"refused"`) != 2 || strings.Count(got, `"state":"used"`) != 1 {
		t.Errorf("the approvals are %s", got)
	}
	end()

	// Without --ask the question is for the person alone, and cancelling the turn ends it for the host.
	c, _, end = p.speak(p.fake("quiet", allow...)...)
	session = c.session(p.Path("project"))
	wait = c.prompt(session, `{"Write":[`+string(must(json.Marshal(permit(5, "execute", "push quiet"))))+`],"Answers":2}`)
	go func() {
		await(t, "it is asked", func() bool { return strings.Contains(p.run("pwos", "approvals"), "quiet") })
		_ = json.NewEncoder(c.in).Encode(object{"jsonrpc": "2.0", "method": "session/cancel", "params": object{"sessionId": session}}) // else the prompt ends otherwise
	}()
	if got := chosen(wait()); got[5.0] != "cancelled" || len(c.asked) > 0 {
		t.Errorf("cancelled: %v, asked %v", got, c.asked)
	}
	end()
	p.idle()

	p.killEditor(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`, append([]string{p.pwos, "acp"}, p.fake("left", allow...)...)...)
	out, err := p.try("pwos", "acp", "jemini")
	if err == nil || !strings.Contains(out, "did you mean gemini") {
		t.Errorf("an unknown host: %v %s", err, out)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// acpHosts are the hosts that speak ACP, themselves or by an adapter.
func acpHosts() (all []presetHost) {
	for _, h := range presetHosts() {
		if h.name == "codex" {
			h.env = append(h.env, `CODEX_CONFIG={"model":"x"}`)
		}
		all = append(all, h)
	}
	return all
}

// TestACP: each host that pwos knows does in an editor what it is told: a tool that is granted and one that is not, one that a rule asks
// about, which the editor's user allows, and a write outside.
func TestACP(t *testing.T) {
	t.Parallel()
	for _, h := range acpHosts() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			if adapter := map[string]string{"claude": "claude-agent-acp", "codex": "codex-acp", "pi": "pi-acp"}[h.name]; adapter != "" {
				if _, err := os.Stat(filepath.Join(p.bin, adapter)); err != nil {
					t.Skip(err)
				}
			}
			testkit.Must(t, errors.Join(
				os.WriteFile(p.Path("home/.bashrc"), []byte("mine\n"), 0o600),
				os.WriteFile(p.Path("project/opencode.json"), []byte(`{"model":"anthropic/claude-sonnet-4-5"}`), 0o600),
				os.WriteFile(p.Path("policy.cedar"), []byte(
					`@id("marks") @ask("30m") forbid(principal, action == Syscall::"Host.ToolUse", resource) when {context.args.input like "*marked*"};`), 0o600),
				os.WriteFile(p.Path("project/out"), []byte("echo x >>"+p.Path("home")+"/.bashrc; touch tried"), 0o600),
			))
			m := newModel(
				t, h.command("touch made"), h.command("sh ./out"), h.command("touch marked"),
				step{tool: h.run, input: h.command("touch denied").input, before: func() {
					p.run("pwos", "cap", "grant", "1", "Memory.Set", "Tool:"+h.name+"/ToolSearch", "Upstream:"+h.model)
				}},
			)
			p.holdFor(&h, m, "40s")
			args := []string{"--ask", "--allow", "Memory.Set,Tool:" + h.name + "/*,Upstream:" + h.model}
			for _, one := range h.env {
				args = append(args, "--env", one)
			}
			c, _, end := p.speak(append(args, h.name)...)
			c.choose = func(object) string { return "once" }
			session := c.session(p.Path("project"))
			if got := c.prompt(session, "go")(); got["stopReason"] != "end_turn" {
				t.Errorf("the turn ends with %v", got)
			}
			end()
			why := "pwos cap grant 1 --add Tool:" + h.name + "/" + h.named
			if h.name == "gemini" || h.name == "qwen" { // they ask for permission first, whose answer has no place for a reason: the editor shows it
				why = ""
			}
			want := []string{"", "", "", why}
			if h.name == "qwen" { // it ends the turn
				want = want[:3]
			}
			m.expect("", want...)
			for name, want := range map[string]bool{"made": true, "tried": true, "marked": true, "denied": false} {
				if p.exists(name) != want {
					t.Errorf("%s was made: %t; the tools gave %q", name, !want, m.results)
				}
			}
			if got := testkit.ReadFile(t, p.Path("home/.bashrc")); got != "mine\n" {
				t.Errorf("outside there is %q", got)
			}
			if !slices.ContainsFunc(c.asked, func(m object) bool { return strings.Contains(fmt.Sprint(m), "marked") }) || len(c.asked) != 1 {
				t.Errorf("the editor's user is asked %v", c.asked)
			}
			if got := p.run("pwos", "approvals", "--all"); strings.Count(got, `"state":"used"`) != 1 {
				t.Errorf("the approvals are %s", got)
			}
			p.idle()
		})
	}
}

// TestACPStrictest: of the tools that a use may be, one that is not allowed decides.
func TestACPStrictest(t *testing.T) {
	t.Parallel()
	p := newPlaceAt(t, "")
	args := p.fake("strict", "--allow", "Tool:fake/put")
	testkit.Must(t, os.WriteFile(p.Path("strict.toml"), []byte("name = \"fake\"\n[acp]\nargs = [\"t-acp\"]\n[tools]\nwrite = [\"put\", \"overwrite\"]\n"), 0o600))
	c, _, end := p.speak(args...)
	defer end()
	c.session(p.Path("project"))
	result := c.do(doing{Write: []string{permit(1, "edit", "x")}, Answers: 1})
	if got := chosen(result); got[1.0] != "no" || !strings.Contains(fmt.Sprint(result), "Tool:fake/overwrite") {
		t.Errorf("one that may be overwrite is answered %v: %v", got, result)
	}
}

// TestACPSettings: what docs/doors.md has for the settings of an editor starts what it says.
func TestACPSettings(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "bin")
	testkit.Must(t, os.Mkdir(bin, 0o700))
	for _, name := range []string{"gemini", "claude", "claude-agent-acp"} {
		testkit.Must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nread -r offer\necho '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"by\":\"'${0##*/}'\"}}'\nread -r end\nexit 0\n"), 0o700))
	}
	p := newPlaceAt(t, bin)
	p.configure("")
	text := testkit.ReadFile(t, "../../docs/doors.md")
	_, text, _ = strings.Cut(text, "```json\n{\"agent_servers\"")
	text, _, _ = strings.Cut(text, "```")
	var settings struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"agent_servers"`
	}
	testkit.Must(t, json.Unmarshal([]byte(`{"agent_servers"`+text), &settings))
	for name, one := range settings.Servers {
		if one.Command != "pwos" || one.Args[0] != "acp" {
			t.Errorf("%s starts %s %q", name, one.Command, one.Args)
			continue
		}
		host := one.Args[len(one.Args)-1]
		_, offered, end := p.speak(one.Args[1:]...)
		if want := map[string]string{"gemini": "gemini", "claude": "claude-agent-acp"}[host]; offered["by"] != want {
			t.Errorf("%s starts %v", name, offered)
		}
		end()
	}
	if len(settings.Servers) != 2 {
		t.Errorf("there are %d settings", len(settings.Servers))
	}
}

package scripts_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// doorRules forbid calls at all doors, and for each door one that the others allow.
const doorRules = `@id("no-prod") @fix("write below test/")
forbid(principal, action == Syscall::"Memory.Set", resource) when { context.args.key like "prod/*" };
@id("no-rm") @fix("move it to trash/ instead")
forbid(principal, action == Syscall::"Host.ToolUse", resource) when { context.args.tool == "Bash" && context.args.input like "*rm -rf*" };
`

// doorCall is a call that the rules refuse.
type doorCall struct {
	typ, data string
	rule, fix string
}

const mayAtDoors = "Memory.*,Host.ToolUse,Job.*,Syscall.Register"

func doorCalls(via string) map[string]doorCall {
	use := func(tool, command, rule, fix string) doorCall {
		return doorCall{"Host.ToolUse", fmt.Sprintf(`{"host":"claude","session":"s","tool":%q,"input":{"command":%q}}`, tool, command), rule, fix}
	}
	return map[string]doorCall{
		"memory": {"Memory.Set", `{"key":"/prod/x","value":1}`, "no-prod", "write below test/"},
		"tool":   use("Bash", "cd / && rm -rf *", "no-rm", "move it to trash/ instead"),
		"via":    use("Read", "", "not-by-"+via, "come in by another door than "+via),
	}
}

// policyDoor is a way into the kernel.
type policyDoor struct {
	name, via string
	only      string                                         // the only call that it can make; "": any
	call      func(t *testing.T, p place, c doorCall) string // makes a call as the agent with the door's name, and returns the answer
}

func policyDoors() []policyDoor {
	return []policyDoor{
		{"kernel-sock", "socket", "", func(t *testing.T, p place, c doorCall) string {
			return p.attach(t, "kernel.sock", "kernel-sock").ask(message(c.typ, c.data), c.typ)
		}},
		{"events-sock", "socket", "", func(t *testing.T, p place, c doorCall) string {
			return p.attach(t, "events.sock", "events-sock").ask(fmt.Sprintf(`{"type":"command","name":%q,"payload":%s}`, c.typ, c.data), `"name":"`+c.typ)
		}},
		{"short-name", "socket", "memory", func(t *testing.T, p place, _ doorCall) string {
			return p.attach(t, "kernel.sock", "short-name").ask(message("Syscall.Call", `{"syscall":"memory","args":["set","prod/x",1]}`), "Syscall.Call")
		}},
		{"provider", "socket", "", throughProvider},
		{"channel", "channel", "", func(t *testing.T, p place, c doorCall) string { return p.hosted(t, c, "channel", "") }},
		{"channel-fd3", "channel", "", func(t *testing.T, p place, c doorCall) string {
			return p.hosted(t, c, "channel-fd3", "exec 0<&3 1>&3\n", "--channel", "fd3")
		}},
		{"job", "job", "", func(t *testing.T, p place, c doorCall) string {
			operator := p.connect(t, "kernel.sock")
			operator.ask(message("Job.Subscribe", `{}`), "Job.Subscribe")
			p.attach(t, "kernel.sock", "job").ask(message("Job.Start", fmt.Sprintf(`{"name":%q,"payload":%s}`, c.typ, c.data)), "Job.Start")
			return operator.await("Job.Failed")
		}},
		{"mcp", "mcp", "", func(t *testing.T, p place, c doorCall) string {
			session := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + strings.ReplaceAll(c.typ, ".", "_") + `","arguments":` + c.data + `}}` + "\n"
			out, _, _ := p.told(t, session, "mcp", "serve", "--as", "mcp", "--allow", mayAtDoors)
			return out
		}},
		{"hook", "hook", "tool via", func(t *testing.T, p place, c doorCall) string {
			var in struct{ Tool, Session, Input json.RawMessage }
			testkit.Must(t, json.Unmarshal([]byte(c.data), &in))
			question := fmt.Sprintf(`{"session_id":%s,"tool_name":%s,"tool_input":%s}`, in.Session, in.Tool, in.Input)
			_, says, status := p.told(t, question, "hook", "run", "claude", "--as", "hook", "--allow", mayAtDoors)
			if status != 2 {
				t.Errorf("the hook exits with %d", status)
			}
			return says
		}},
		{"inline", "inline", "", func(t *testing.T, p place, c doorCall) string { // no kernel may run
			p.pwos(t, "shutdown")
			defer p.pwos(t, "call", "Syscall.Ping", "payload=1")
			session := message("Process.Attach", attachData("inline")) + "\n" + message(c.typ, c.data) + "\n"
			out, _, _ := p.told(t, session, "--mode=inline")
			_, answer, _ := strings.Cut(out, "\n")
			return answer
		}},
	}
}

// throughProvider calls a registered syscall, whose provider makes the call, and fails with its answer.
func throughProvider(t *testing.T, p place, c doorCall) string {
	const name = "Store.Put"
	provider, second := p.attach(t, "kernel.sock", "provider"), p.attach(t, "kernel.sock", "provider")
	provider.ask(message("Syscall.Register", `{"name":"`+name+`","kind":"command","input":{},"provider":"connection"}`), "Syscall.Register")
	caller := p.attach(t, "kernel.sock", "caller", "Store.Put")
	caller.say(message(name, `{}`))
	var asked struct{ Data struct{ Call_id string } }
	testkit.Must(t, json.Unmarshal([]byte(provider.await("Syscall.Requested")), &asked))
	var refused struct{ Data struct{ Message string } }
	testkit.Must(t, json.Unmarshal([]byte(second.ask(message(c.typ, c.data), c.typ)), &refused))
	done, err := json.Marshal(map[string]any{"call_id": asked.Data.Call_id, "error": map[string]any{"message": refused.Data.Message}})
	testkit.Must(t, err)
	provider.ask(message("Syscall.Complete", string(done)), "Syscall.Complete")
	return caller.await(name)
}

// TestPolicyAtEveryDoor: each door refuses the same call by the same rule, shows its id and its fix, and leaves an entry
// with the id and the hash of the policy; and each has the value of context.via.
func TestPolicyAtEveryDoor(t *testing.T) {
	t.Parallel()
	p := settle(t)
	dir := filepath.Join(p.Dir, "home", ".config", "pwos")
	testkit.Must(t, os.MkdirAll(dir, 0o700))
	rules := doorRules
	named := make(map[string]bool)
	for _, d := range policyDoors() {
		if !named[d.via] {
			rules += fmt.Sprintf("@id(\"not-by-%s\") @fix(\"come in by another door than %[1]s\")\nforbid(principal, action == Syscall::\"Host.ToolUse\", resource) when { context.args.tool == \"Read\" && context.via == %[1]q };\n", d.via)
		}
		named[d.via] = true
	}
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "policy.cedar"), []byte(rules), 0o600))
	var shown struct{ Hash string }
	testkit.Must(t, json.Unmarshal([]byte(p.pwos(t, "call", "Policy.Show")), &shown))
	defer p.pwos(t, "shutdown", "--no-spawn")
	for _, d := range policyDoors() {
		for kind, c := range doorCalls(d.via) {
			if d.only != "" && !strings.Contains(d.only, kind) {
				continue
			}
			before := len(p.decided(t))
			says := d.call(t, p, c)
			if !strings.Contains(strings.ReplaceAll(says, `\`, ""), fmt.Sprintf(`the rule "%s" forbids this %s`, c.rule, c.typ)) || !strings.Contains(says, c.fix) {
				t.Errorf("%s, %s: the agent got\n%s\nwant the rule %s and its fix", d.name, kind, says, c.rule)
			}
			if strings.Contains(says, ".cedar") {
				t.Errorf("%s, %s: the agent's error has the place of the rule: %s", d.name, kind, says)
			}
			entries := p.decided(t)[before:]
			if len(entries) != 1 || entries[0] != (decision{d.name, c.typ, c.rule, shown.Hash}) {
				t.Errorf("%s, %s: the journal has %+v, want one entry of the rule %s", d.name, kind, entries, c.rule)
			}
		}
	}
}

// decision is the journal's information about a call that a rule refused.
type decision struct{ agent, typ, rule, policy string }

// decided returns the calls in the journal that rules refused, in order.
func (p place) decided(t *testing.T) (list []decision) {
	t.Helper()
	agents := make(map[int64]string)
	segments, err := filepath.Glob(filepath.Join(p.Dir, "home", ".local", "state", "pwos", "journal", "*.ndjson"))
	testkit.Must(t, err)
	for _, name := range segments {
		text, err := os.ReadFile(name)
		testkit.Must(t, err)
		for line := range bytes.Lines(text) {
			var e struct {
				PID     int64
				Request struct{ Type, Name string }
				Outcome struct {
					Data struct {
						PID       int64
						ChildPID  int64  `json:"child_pid"`
						AgentID   string `json:"agent_id"`
						ChildName string `json:"child_agent_id"`
					}
					Details struct{ Rule, Policy string }
				}
			}
			if json.Unmarshal(line, &e) != nil {
				continue // a checkpoint, or an answer in another format
			}
			switch e.Request.Type {
			case "Process.Attach":
				agents[e.Outcome.Data.PID] = e.Outcome.Data.AgentID
			case "Syscall.Spawn":
				agents[e.Outcome.Data.ChildPID] = e.Outcome.Data.ChildName
			}
			if d := e.Outcome.Details; d.Rule != "" {
				list = append(list, decision{agents[e.PID], cmp.Or(e.Request.Name, e.Request.Type), d.Rule, d.Policy})
			}
		}
	}
	return list
}

// wire is a connection to the kernel.
type wire struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
}

func (p place) connect(t *testing.T, socket string) *wire {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(p.RuntimeDir(), socket))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the kernel may have ended already
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	w := &wire{t: t, conn: conn, lines: bufio.NewReader(conn)}
	w.await("Syscall.Authenticate")
	w.say(`{"kind":"reply","type":"Syscall.Authenticate","data":null}`)
	return w
}

// attach returns a connection that is the agent with a name.
func (p place) attach(t *testing.T, socket, agent string, more ...string) *wire {
	t.Helper()
	w := p.connect(t, socket)
	if answer := w.ask(message("Process.Attach", attachData(agent, more...)), "Process.Attach"); !strings.Contains(answer, `"kind":"reply"`) {
		t.Fatal(answer)
	}
	return w
}

func attachData(agent string, more ...string) string {
	may := strings.Join(append(strings.Split(mayAtDoors, ","), more...), `","`)
	return fmt.Sprintf(`{"agent_id":%q,"capabilities":{"allowed_syscalls":["%s"]}}`, agent, may)
}

func message(typ, data string) string {
	return fmt.Sprintf(`{"kind":"command","type":%q,"data":%s,"metadata":{"id":"m","timestamp":1}}`, typ, data)
}

func (w *wire) say(frame string) {
	w.t.Helper()
	_, err := fmt.Fprintln(w.conn, frame)
	testkit.Must(w.t, err)
}

// await returns the next frame that contains a text.
func (w *wire) await(text string) string {
	w.t.Helper()
	for {
		line, err := w.lines.ReadString('\n')
		testkit.Must(w.t, err)
		if strings.Contains(line, text) {
			return line
		}
	}
}

func (w *wire) ask(frame, text string) string {
	w.t.Helper()
	w.say(frame)
	return w.await(text)
}

// told runs pwos with a text as its input.
func (p place) told(t *testing.T, input string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := p.command(t.Context(), args...)
	var out, says strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &says
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), says.String(), cmd.ProcessState.ExitCode()
}

// hosted runs a program that makes the call on its channel, and returns the answer.
func (p place) hosted(t *testing.T, c doorCall, name, before string, flags ...string) string {
	t.Helper()
	script := before + `read -r hello
printf '%s\n' '{"kind":"reply","type":"Syscall.Authenticate","data":null}'
printf '%s\n' '` + message(c.typ, c.data) + `'
read -r answer
echo "$answer" >&2
`
	args := append([]string{"run", "--channel", "stdio", "--name", name, "--sandbox", "off", "--allow", mayAtDoors}, flags...)
	_, says, _ := p.told(t, "", append(args, "--", "sh", "-c", script)...)
	return says
}

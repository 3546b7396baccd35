package kernel_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
)

// ruler makes random rules, and calls that they may be about.
type ruler struct{ *rand.Rand }

func (r ruler) pick(of ...string) string { return of[r.IntN(len(of))] }

func (r ruler) rules() string {
	var text strings.Builder
	for n := range 1 + r.IntN(4) {
		typ := r.pick("Memory.Set", "Memory.Get", "Memory.List", "Host.ToolUse", "FileSystem.Resolve", "Http.Fetch")
		condition := map[string]string{
			"Memory.Set":         r.pick(`context.args.key like "a*"`, `context.args.key == "b/1"`, `context.args.value like "*1*"`),
			"Memory.Get":         r.pick(`context.args.key != "b/1"`, `context.args.key like "*1"`),
			"Memory.List":        r.pick(`context.args has limit && context.args.limit > 2`, `!(context.args has prefix)`, `context.args has limit && context.args.limit * 9223372036854775807 > 1`),
			"Host.ToolUse":       r.pick(`context.args has command && context.args.command like "rm *"`, `context.args.tool == "Read"`, `context.args.input like "*\"a\"*"`),
			"FileSystem.Resolve": r.pick(`context.args.uri like "os:///a*"`, `context.args.uri == "os:///b/c"`),
			"Http.Fetch":         r.pick(`context.args.host == "a.example"`, `context.args.method == "GET"`, `context.args has timeout && context.args.timeout.lessThan(decimal("2.5"))`),
		}[typ]
		action := fmt.Sprintf("Syscall::%q", typ)
		if typ == "Host.ToolUse" && !strings.Contains(condition, "args.tool") && r.IntN(2) == 0 {
			action = `Tool::"claude/Bash"`
		}
		and := r.pick("", ` && context.via == "hook"`, ` && context.via != "mcp"`, " && principal has key", " && context.tick > 3", ` && principal.ancestors.contains(Agent::"lead")`)
		fmt.Fprintf(&text, "@id(\"r%d\") %sforbid(%s, action == %s, resource) when { (%s)%s };\n", n, r.pick("", `@ask("1h") `),
			r.pick("principal", `principal in Agent::"lead"`, `principal == Agent::"other"`), action, condition, and)
	}
	return text.String()
}

func (r ruler) call() (typ, data string) {
	switch typ = r.pick("Memory.Set", "Memory.Get", "Memory.List", "Host.ToolUse", "FileSystem.Resolve", "Http.Fetch"); typ {
	case "Memory.Set":
		return typ, fmt.Sprintf(`{"key":%q,"value":%s}`, r.pick("a", "/a/1", "b/1", "/b/1", "c"), r.pick("1", "1.0", `"1"`, "{}", "2", "0.12345678901234567890123"))
	case "Memory.Get":
		return typ, fmt.Sprintf(`{"key":%q}`, r.pick("a", "/b/1", "none"))
	case "Memory.List":
		return typ, r.pick(`{}`, `{"limit":2}`, `{"limit":3}`, `{"prefix":"/a"}`)
	case "Host.ToolUse":
		return typ, fmt.Sprintf(`{"host":"claude","session":"s","tool":%q,"input":%s%s}`, r.pick("Bash", "Read"), r.pick(`{"command":"rm a"}`, `{"command":"ls"}`, `"a"`, `{"a":1}`),
			r.pick("", "", `,"cut":["command"]`, `,"cut":["*"]`))
	case "FileSystem.Resolve":
		return typ, fmt.Sprintf(`{"uri":%q}`, r.pick("os/a", "os:///a/b", "os/./b/c", "os/b/x/../c", "os:///nothing"))
	}
	return typ, fmt.Sprintf(`{"url":%q%s}`, r.pick("https://A.example/x", "https://b.example:443/", "nonsense"), r.pick("", `,"method":"PUT","body":"x"`, `,"timeout":2.25`, `,"timeout":2.00001`))
}

// TestPolicyTestIsLive: what `pwos policy test` says of calls that were made without rules is the outcome of the same calls under the
// rules: 20 random policies with 15 calls each, 250 with 40 where PWOS_LONG is set.
func TestPolicyTestIsLive(t *testing.T) {
	t.Parallel()
	policies, calls, seed := 20, 15, uint64(2)
	if os.Getenv("PWOS_LONG") != "" {
		policies, calls, seed = 250, 40, rand.Uint64()
	}
	t.Logf("seed %d", seed)
	r := ruler{rand.New(rand.NewPCG(seed, 0))}
	d := start(t, ruled(t, nil), func(cfg *config.Config) { cfg.Approval.Wait = 1 })
	operator := d.dial(t)
	const may = `,"capabilities":{"allowed_syscalls":["*"]}`
	lead, hook, mcp, other := d.dial(t), d.dial(t), d.dial(t), d.dial(t)
	lead.attach("lead", may)
	hook.attach("lead", may+`,"via":"hook"`)
	mcp.attach("other", may+`,"via":"mcp"`)
	other.attach("other", may)
	var child schema.SpawnOutput
	lead.call("Syscall.Spawn", `{"child_agent_id":"child","capabilities":{"allowed_syscalls":["*"]}}`, &child)
	asChild := func(typ, data string) answer {
		return operator.ask(typ, strings.Replace(fmt.Sprintf(`{"pid":%d,%s`, child.ChildPID, data[1:]), ",}", "}", 1))
	}
	event := func(typ, data string) answer { return other.speak(schema.OsEvent, typ, data, "") }
	doors := []func(typ, data string) answer{lead.ask, hook.ask, mcp.ask, event, asChild}

	type made struct {
		typ, verdict string // the verdict is its outcome under the rules
		set          *policy.Set
		text         string
	}
	var all []made
	verdicts := make(map[string]int)
	for range policies {
		text := r.rules()
		set, problems := policy.Compile([]policy.File{{Name: "policy.cedar", Text: []byte(text)}})
		if set == nil {
			t.Fatalf("%s%v", text, problems)
		}
		type one struct {
			door      int
			typ, data string
		}
		list := make([]one, calls)
		load := func(text string) {
			path := filepath.Join(filepath.Dir(d.cfg.File), "policy.cedar")
			if text == "" {
				if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			} else {
				writeRules(t, &d.cfg, map[string]string{"policy.cedar": text})
			}
			operator.call("Policy.Reload", `{}`, nil)
		}
		load("")
		for i := range list {
			typ, data := r.call()
			list[i] = one{r.IntN(len(doors)), typ, data}
			if list[i].typ == "FileSystem.Resolve" && list[i].door == 4 {
				list[i].door = 0 // it acts as its caller alone
			}
			doors[list[i].door](typ, data)
		}
		first := len(all)
		all = append(all, make([]made, 2*calls)...) // without rules, then under them
		load(text)
		for i, one := range list {
			a := doors[one.door](one.typ, one.data)
			verdict := verdictOf(operator, a)
			verdicts[strings.TrimRight(verdict, "0123456789")]++
			all[first+i] = made{one.typ, verdict, set, fmt.Sprintf("%s %s by door %d under\n%sthen %s", one.typ, one.data, one.door, text, a.Data)}
			all[first+calls+i] = made{typ: one.typ}
		}
		operator.call("Clock.Advance", `{"ticks":1}`, nil)
	}
	d.stop()
	t.Logf("live: %v", verdicts)
	for _, want := range []string{"", "would deny r", "would ask"} {
		if verdicts[want] == 0 {
			t.Errorf("no call has the verdict %q", want)
		}
	}

	forms, err := offline.PolicyForms(d.cfg.File, func(string) string { return "" })
	testkit.Must(t, err)
	for first := 0; first < len(all); first += 2 * calls {
		reader := journal.NewReader(nil, filepath.Join(d.cfg.StateDir, "journal"), journal.ReaderOptions{})
		past := policy.NewPast(all[first].set, forms)
		at := 0
		for {
			record, err := reader.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			testkit.Must(t, err)
			e := &policy.Entry{PID: record.PID, Tick: record.Tick, Origin: record.Origin, Conn: record.Conn, Request: record.Request, Outcome: record.Outcome}
			_, typ := schema.Peek(e.Request)
			random := e.PID != 0 && typ != "Syscall.Spawn" && typ != "Syscall.Describe" && !strings.HasPrefix(typ, "Approval.")
			judge := random && at >= first && at < first+calls
			c, typ, rule, err := past.Judge(e, judge)
			testkit.Must(t, err)
			if judge {
				got := string(c)
				if c == policy.WouldDeny {
					got += " " + rule
				}
				if m := all[at]; got != m.verdict || typ != "" && typ != m.typ {
					t.Fatalf("the journal's %s: %q, live %q: %s", typ, got, m.verdict, m.text)
				}
			}
			if random {
				at++
			}
		}
		testkit.Must(t, reader.Close())
		if at != len(all) {
			t.Fatalf("the journal has %d calls, %d were made", at, len(all))
		}
	}
}

var theRule = regexp.MustCompile(`^the rule "(r\d)"`)

// verdictOf is what policy test would have said of a call with this answer.
func verdictOf(c *client, a answer) string {
	if a.Kind != "error" {
		return ""
	}
	f := c.failure(a)
	if m := theRule.FindStringSubmatch(f.Message); m != nil {
		return "would deny " + m[1]
	}
	if strings.Contains(f.Message, "waits for the approval") {
		return "would ask"
	}
	return ""
}

package kernel_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
)

// toolUse returns the data of a Host.ToolUse.
func toolUse(host, tool string) string {
	return fmt.Sprintf(`{"host":%q,"session":"s","tool":%q,"input":{"command":"ls"}}`, host, tool)
}

// TestRefusedTool: the host gets a decision; everyone else a refused call: the log, the metrics, the budget, the idempotency keys,
// and what was foretold.
func TestRefusedTool(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator, c, stranger := d.dial(t), d.dial(t), d.dial(t)
	pid := c.attach("claude", `,"capabilities":{"allowed_syscalls":["Tool:claude/Read","Capability.Check"],"budget":{"calls":5}}`)
	none := stranger.attach("none", `,"capabilities":{"allowed_syscalls":["Memory.Get"]}`)
	fix := fmt.Sprintf(`"pwos cap grant %d --add Tool:claude/Bash"`, pid)

	for _, dialect := range dialects() {
		a := c.speak(dialect, "Host.ToolUse", toolUse("claude", "Bash"), "")
		want := fmt.Sprintf(`{"decision":"deny","reason":%q}`, fmt.Sprintf("pid %d may not call the tool claude/Bash: allow it too with %s", pid, fix))
		if a.Kind != "reply" || string(a.Data) != want {
			t.Errorf("as an %s: %s %s, want %s", dialect, a.Kind, a.Data, want)
		}
	}
	c.call("Host.ToolUse", toolUse("claude", "Read"), nil)
	f := stranger.failure(stranger.ask("Host.ToolUse", toolUse("claude", "Bash")))
	if want := fmt.Sprintf(`pid %d may not call Host.ToolUse: allow it too with "pwos cap grant %d --add Tool:claude/Bash"`, none, none); f.Message != want {
		t.Errorf("without any tool: %q, want %q", f.Message, want)
	}
	if b := operator.shownBudgets()[pid].Calls; b.Spent != "1" {
		t.Errorf("the budget has %s calls, want the one that was allowed", b.Spent)
	}

	// The key of a refused use is free: once the tool is granted, the same message is allowed.
	keyed := `,"idempotencyKey":"k"`
	if a := c.askWith("Host.ToolUse", toolUse("claude", "Edit"), keyed); !strings.Contains(string(a.Data), "deny") {
		t.Errorf("before the grant: %s", a.Data)
	}
	operator.call("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["Tool:claude/Edit"],"mode":"add"}`, pid), nil)
	if a := c.askWith("Host.ToolUse", toolUse("claude", "Edit"), keyed); !strings.Contains(string(a.Data), "allow") {
		t.Errorf("after the grant: %s", a.Data)
	}

	check := func(when string) {
		operator := d.dial(t)
		log, err := schema.AuditLog.Decode(operator.call("Audit.Log", `{"denied":true,"type":"Host.ToolUse","request":true}`, nil).Data)
		testkit.Must(t, err)
		var tools []string
		for _, e := range log.Entries {
			in, invalid := schema.HostToolUse.Input().Decode(e.Request)
			if invalid != nil {
				t.Fatal(invalid)
			}
			tools = append(tools, in.(*schema.ToolUseInput).Tool)
			decided := strings.HasPrefix(string(e.Payload), `{"decision":"deny","reason":"pid `)
			if e.Status != schema.StatusDenied || e.Success || e.Code != 403 || e.ErrorID != "capability.denied" || decided != (e.PID == pid) ||
				!strings.Contains(string(e.Error), "--add Tool:claude/") {
				t.Errorf("%s: %+v, payload %s", when, e, e.Payload)
			}
		}
		if want := []string{"Bash", "Bash", "Bash", "Edit"}; !slices.Equal(tools, want) {
			t.Errorf("%s: refused %q, want %q", when, tools, want)
		}
		var m struct {
			Denied map[string]int `json:"denied_by_code"`
			All    map[string]int `json:"by_code"`
		}
		operator.call("Audit.Metrics", `{}`, &m)
		if m.Denied["Host.ToolUse"] != 4 || m.All["Host.ToolUse"] != 6 {
			t.Errorf("%s: %d of %d uses are counted as refused, want 4 of 6", when, m.Denied["Host.ToolUse"], m.All["Host.ToolUse"])
		}
	}
	check("at once")
	d.restart(t)
	check("after a restart")
}

// TestOldToolRefusals: an older kernel recorded a refused use as a reply. Its journal opens, and the entry reads as it did.
func TestOldToolRefusals(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.dial(t).attach("claude", `,"capabilities":{"allowed_syscalls":["Tool:claude/Read"]}`)
	const reply = `{"decision":"deny","reason":"r"}`
	d.restartAfter(t, func() {
		log, _, err := journal.Open(journal.Options{Dir: filepath.Join(d.cfg.StateDir, "journal")})
		testkit.Must(t, err)
		log.Append(&journal.Entry{
			Time: 1, PID: 1, Origin: "https://my-os.local/", Conn: "c-9",
			Request: []byte(`{"kind":"command","type":"Host.ToolUse","data":` + toolUse("claude", "Bash") + `,"metadata":{"id":"old","timestamp":1}}`),
			Outcome: []byte(`{"kind":"reply","data":` + reply + `}`),
		})
		testkit.Must(t, log.Close())
	})
	out, err := schema.AuditLog.Decode(d.dial(t).call("Audit.Log", `{"id":"old"}`, nil).Data)
	testkit.Must(t, err)
	if len(out.Entries) != 1 || out.Entries[0].Status != schema.StatusOK || string(out.Entries[0].Payload) != reply {
		t.Errorf("the old entry reads as %+v", out.Entries)
	}
}

// TestCheckedNames: Capability.Check answers for what a grant names: a tool, or a path; and does not promise all of a syscall
// that is granted for some names.
func TestCheckedNames(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator := d.dial(t)
	pid := operator.spawn(0, `{"allowed_syscalls":["Tool:claude/mcp/fs/*","Call:mcp/fs/*"]}`)
	every := operator.spawn(0, `{"allowed_syscalls":["*"]}`)
	for _, test := range []struct {
		pid     int64
		syscall string
		allowed bool
		reason  string
	}{
		{pid, "Tool:claude/mcp/fs/read", true, ""},
		{pid, "Tool:claude/Bash", false, "--add Tool:claude/Bash"},
		{pid, "Tool:claude", false, "tool must be letters, digits"},
		{pid, "Host.ToolUse", false, "for some names only"},
		{pid, "Call:mcp/fs/read", true, ""},
		{pid, "Call:mcp/git/log", false, "--add Call:mcp/git/log"},
		{pid, "Syscall.Call", false, "for some names only"},
		{every, "Tool:claude/Bash", true, ""},
		{every, "Host.ToolUse", true, ""},
		{every, "Syscall.Call", true, ""},
		{0, "Tool:claude/Bash", true, ""},
	} {
		var out schema.CheckOutput
		operator.call("Capability.Check", fmt.Sprintf(`{"pid":%d,"syscall":%q}`, test.pid, test.syscall), &out)
		if out.Allowed != test.allowed || !strings.Contains(out.Reason, test.reason) {
			t.Errorf("pid %d, %s: %+v, want %t: %q", test.pid, test.syscall, out, test.allowed, test.reason)
		}
	}
}

// TestToolOfAnotherServer: a grant of a server's tools is none of those of a server whose name begins alike, and that of the tools
// of pwos is one of what "pwos mcp serve" offers.
func TestToolOfAnotherServer(t *testing.T) {
	t.Parallel()
	d := start(t)
	operator := d.dial(t)
	decide := func(pid int64, host, tool string) string {
		var out schema.ToolUseOutput
		operator.call("Host.ToolUse", strings.Replace(toolUse(host, schema.HostTool(tool)), "{", fmt.Sprintf(`{"pid":%d,`, pid), 1), &out)
		var check schema.CheckOutput
		operator.call("Capability.Check", fmt.Sprintf(`{"pid":%d,"syscall":%q}`, pid, "Tool:"+host+"/"+schema.HostTool(tool)), &check)
		if check.Allowed != (out.Decision == schema.ToolAllow) {
			t.Errorf("%s is foretold as %+v, and decided as %+v", tool, check, out)
		}
		return out.Decision
	}
	operator.call("Syscall.Register", registering("Sum.Add", ""), nil)
	path := strings.Repeat("long/", 20) + "tool"
	_, marked := schema.ServedName(path)
	pid := operator.spawn(0, `{"allowed_syscalls":["Tool:claude/mcp/pwos/*","Tool:claude/mcp/fs/*","Tool:claude/mcp__my__fs__read","Call:`+path+`"]}`)
	all := operator.spawn(0, `{"allowed_syscalls":["Tool:claude/*"]}`)
	for tool, want := range map[string]string{
		"mcp__pwos__Memory_Set": "allow", "mcp__pwos__Sum_Add": "allow", "mcp__pwos__" + marked: "allow", "mcp__fs__read": "allow",
		"mcp__fs__Memory_Set": "allow", "mcp__my__fs__read": "allow",
		"mcp__pwos__evil__run": "deny", "mcp__pwos___run": "deny", "mcp__pwos____run": "deny", "mcp__pwos__run": "deny", "mcp__pwos__Memory_Set__x": "deny",
		"mcp__pwos__Memory_set": "deny", "mcp__pwos__Ipc_Subscribe": "deny", "mcp__pwos__Kernel_Booted": "deny", "mcp__pwos__Syscall_Authenticate": "deny",
		"mcp__fs__evil__run": "deny", "mcp__fs__evil__Memory_Set": "deny", "mcp__my__fs__write": "deny", "mcp__my__fs": "deny",
		"mcp/pwos/evil__run": "deny", "mcp/pwos/_run": "deny", "mcp/fs/a__b": "deny", "mcp/pwos": "deny",
	} {
		if got := decide(pid, "claude", tool); got != want {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
		if got := decide(all, "claude", tool); got != "allow" {
			t.Errorf("%s: %s, with a grant of all tools", tool, got)
		}
	}
	reason := string(operator.call("Host.ToolUse", strings.Replace(toolUse("claude", "mcp__pwos__evil__run"), "{", fmt.Sprintf(`{"pid":%d,`, pid), 1), nil).Data)
	if !strings.Contains(reason, "--add Tool:claude/mcp__pwos__evil__run") {
		t.Errorf("the fix is %s", reason)
	}
}

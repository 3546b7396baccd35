package console_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

const policy = `@id("ask-deploy") @ask("30m")
forbid(principal, action == Syscall::"Memory.Set", resource) when { context.args.key like "deploy/*" };
`

// crowd creates processes that have made calls.
func crowd(t *testing.T, s *watched) {
	t.Helper()
	s.do(t, "Syscall.Spawn", `{"child_agent_id":"planner","intent":"plan the release","role":"lead","capabilities":{"allowed_syscalls":["Memory.*","Ipc.*","SYS_SPAWN","SYS_SEND_MSG"],"budget":{"calls":400}}}`)
	s.do(t, "Syscall.Spawn", `{"pid":1,"child_agent_id":"writer","intent":"write the notes","capabilities":{"allowed_syscalls":["Memory.*","Ipc.*","SYS_SEND_MSG"],"budget":{"calls":120}}}`)
	s.do(t, "Syscall.Spawn", `{"pid":1,"child_agent_id":"reviewer","intent":"read them","capabilities":{"allowed_syscalls":["Memory.Get","Ipc.*"]}}`)
	s.do(t, "Syscall.Spawn", `{"child_agent_id":"sleeper","intent":"a program that waits","command":["/bin/sleep","600"],"sandbox":"off"}`)
	for i := range 40 {
		s.do(t, "Memory.Set", `{"pid":2,"key":"notes/%d","value":{"title":"Note %d","done":false}}`, i, i)
		s.do(t, "Syscall.SendMsg", `{"pid":1,"receiver_pid":3,"intent":"review","payload":{"note":%d}}`, i)
		s.do(t, "Ipc.Receive", `{"pid":3,"max":1}`)
		if i%4 == 0 {
			_ = s.try(t, "Memory.Set", `{"pid":3,"key":"notes/%d","value":"changed"}`, i)
		}
		if i%9 == 0 {
			_ = s.try(t, "Http.Fetch", `{"pid":2,"url":"https://example.com/releases/%d"}`, i)
		}
	}
	cause := ""
	for i, step := range []string{
		`Syscall.SendMsg {"pid":1,"receiver_pid":2,"intent":"write","payload":{"note":"release"}}`, `Memory.Set {"pid":2,"key":"notes/release","value":"2.4.1"}`,
		`Syscall.SendMsg {"pid":2,"receiver_pid":3,"intent":"review","payload":{"note":"release"}}`, `Memory.Get {"pid":3,"key":"notes/release"}`,
		`Memory.Set {"pid":3,"key":"notes/verdict","value":"good"}`, `Syscall.SendMsg {"pid":3,"receiver_pid":1,"payload":"it is good"}`,
		`Syscall.Spawn {"pid":1,"child_agent_id":"announcer","intent":"tell of the release"}`,
	} {
		typ, data, _ := strings.Cut(step, " ")
		id := fmt.Sprint("release-7-", i)
		s.step(t, typ, data, id, cause)
		if i != 4 {
			cause = id
		}
	}
	for _, name := range []string{"api", "web"} {
		s.ask(t, fmt.Sprintf(`{"pid":2,"key":"deploy/%s","value":{"version":"2.4.1","replicas":3,"note":"ship it"}}`, name))
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	browserPath(t)
	s := watch(t, policy)
	crowd(t, s)
	p := open(t)
	p.login(s)
	p.loadAxe()
	for _, look := range []struct {
		name          string
		width, height int64
		theme         string
	}{{"wide-light", 1360, 820, "light"}, {"wide-dark", 1360, 820, "dark"}, {"narrow-light", 390, 780, "light"}, {"narrow-dark", 390, 780, "dark"}} {
		p.size(look.width, look.height, look.theme)
		for _, view := range []struct{ name, at, says string }{
			{"processes", "processes?pid=2", "Latest calls"},
			{"timeline", "timeline", "Memory.Set"},
			{"detail", "timeline?seq=20", "Authority"},
			{"past", "past?until=60", "messages"},
			{"past-process", "past?until=60&pid=2", "may call"},
			{"approvals", "approvals", "deploy/"},
			{"denials", "denials", "Grant"},
			{"budgets", "budgets", "Latency"},
			{"graph", "graph?correlation=release-7", "nodes"},
			{"search", "search?query=review", "the best first"},
		} {
			p.show(view.at)
			p.reads(view.says)
			p.picture(view.name + "-" + look.name)
			p.axe(view.name + " " + look.name)
		}
	}
}

// TestPictures takes the pictures for README, if PWOS_PICTURES names their directory: PWOS_PICTURES=../docs/pictures.
func TestPictures(t *testing.T) {
	t.Parallel()
	browserPath(t)
	if os.Getenv("PWOS_PICTURES") == "" {
		t.Skip("PWOS_PICTURES names no directory")
	}
	s := watch(t, policy)
	crowd(t, s)
	p := open(t)
	p.login(s)
	p.size(1320, 560, "light")
	for _, view := range []struct{ name, at, has string }{
		{"console", "timeline?seq=156", ".detail[aria-busy=false] .json"}, {"graph", "graph?correlation=release-7", ".graph-box rect"}, {"approvals", "approvals", ".question"},
	} {
		p.show(view.at)
		p.see(view.has)
		if view.name == "console" {
			p.see(".calls .row[aria-selected=true]")
		}
		p.picture(view.name)
	}
	p.do(chromedp.Navigate(s.page(t, story(t, s, "release-7"))))
	p.reads("planner")
	p.picture("story")
}

// story returns the page of a correlation, as pwos story --html writes it.
func story(t *testing.T, s *watched, correlation string) string {
	t.Helper()
	var out struct{ Entries []json.RawMessage }
	testkit.Must(t, json.Unmarshal(s.do(t, "Audit.Log", `{"correlation":%q,"request":true}`, correlation), &out))
	var page strings.Builder
	page.WriteString(view.PageHead("What happened, and what caused what", ""))
	n := &view.Narrative{Names: view.Names{1: "planner", 2: "planner/writer", 3: "planner/reviewer"}}
	for _, raw := range out.Entries {
		entry := testkit.Value(view.AnswerAs[schema.AuditEntry]("Audit.Log", schema.Value(raw)))(t)
		for _, one := range n.Add(&view.Entry{AuditEntry: entry, Raw: schema.Value(raw)}) {
			page.WriteString(one.HTML())
		}
	}
	page.WriteString(view.PageFoot)
	return page.String()
}

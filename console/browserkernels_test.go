package console_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// member is a kernel of a cluster under test.
type member struct {
	name    string
	options string // of its line in the members file
	place   *testkit.Place
	key     *access.HostKey
}

// crew is a cluster: its bus, and one members file for all.
type crew struct {
	bus     *testbus.Bus
	file    string
	members map[string]*member
}

// muster starts the bus of a cluster.
func muster(t *testing.T, members ...*member) *crew {
	t.Helper()
	c := &crew{members: make(map[string]*member)}
	var lines []string
	for _, m := range members {
		m.place = testkit.NewPlace(t, "")
		testkit.Must(t, os.MkdirAll(m.place.StateDir(), 0o700))
		var line string
		m.key, line = testbus.Key(t, m.place.StateDir(), m.name, m.options)
		lines = append(lines, line)
		c.members[m.name] = m
	}
	c.bus = testbus.Start(t, lines...)
	c.file = members[0].place.Path("members")
	testkit.Must(t, os.WriteFile(c.file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return c
}

// start starts a kernel of the cluster, and waits until it is on the bus.
func (c *crew) start(t *testing.T, name, policy string) *watched {
	t.Helper()
	s := &watched{Place: c.members[name].place}
	s.start(t, policy, config.Cluster{Name: name, Bus: c.bus.URL(), Members: c.file})
	testkit.Eventually(t, name+" reaches the bus", func() bool {
		return testkit.Value(client.Call(testkit.Context(t), s.kernel, schema.ClusterStatus, &schema.ClusterStatusInput{}))(t).Connected
	})
	return s
}

// choose selects a kernel of the page, or all.
func (p *tab) choose(kernel string) {
	p.t.Helper()
	p.see(".choice select")
	p.eval(`(() => { const el = document.querySelector(".choice select"); el.value = ` + quoted(kernel) + `; el.dispatchEvent(new Event("change", {bubbles: true})); })()`)
}

// showAll goes to a view of all kernels.
func (p *tab) showAll(view string) {
	p.t.Helper()
	name, query, _ := strings.Cut(view, "?")
	p.show(name + "?kernel=*&" + query)
}

// The page shows the processes, calls, questions and refusals of all kernels, each with its kernel. It acts on its own
// kernel, and can end processes at another kernel that its own has spawned there. A kernel that does not run is named, and
// returns when it runs again.
func TestKernels(t *testing.T) {
	t.Parallel()
	browserPath(t)
	const sees = `allow="Syscall.SendMsg,Syscall.Spawn,Syscall.Terminate,Memory.*",role="viewer"`
	c := muster(t, &member{name: "alpha", options: sees}, &member{name: "beta", options: sees}, &member{name: "gamma", options: sees})
	alpha, beta := c.start(t, "alpha", policy), c.start(t, "beta", policy)
	alpha.show(t)
	alpha.do(t, "Syscall.Spawn", `{"child_agent_id":"planner","intent":"plan the release","capabilities":{"allowed_syscalls":["Memory.*"],"budget":{"calls":400}}}`)
	alpha.do(t, "Memory.Set", `{"pid":1,"key":"notes/plan","value":"2.4.1"}`)
	alpha.do(t, "Syscall.Spawn", `{"child_agent_id":"builder","kernel":"beta","capabilities":{"allowed_syscalls":["Memory.Get"]}}`)
	beta.do(t, "Syscall.Spawn", `{"child_agent_id":"tester","intent":"test the release","capabilities":{"allowed_syscalls":["Memory.*"],"budget":{"calls":100}}}`)
	for i := range 30 {
		beta.step(t, "Memory.Set", fmt.Sprintf(`{"pid":3,"key":"results/%d","value":%d}`, i, i), fmt.Sprint("result-", i), "")
	}
	_ = beta.try(t, "Http.Fetch", `{"pid":3,"url":"https://example.com/"}`)
	beta.ask(t, `{"pid":3,"key":"deploy/beta","value":1}`)

	p := open(t)
	p.login(alpha)
	p.loadAxe()
	p.show("processes")
	p.reads("planner")
	if text := p.text(); strings.Contains(text, "tester") || strings.Contains(text, "cannot be reached") {
		t.Errorf("the page of one kernel shows\n%s", text)
	}
	p.choose("*")
	p.reads("tester")
	p.reads("gamma: the kernel gamma cannot be reached. It is asked again.")
	type look struct {
		name          string
		width, height int64
		theme         string
	}
	looks := []look{{"wide-light", 1360, 820, "light"}, {"narrow-dark", 390, 780, "dark"}}
	if os.Getenv("PWOS_PICTURES") != "" {
		looks = append(looks, look{"wide-dark", 1360, 820, "dark"}, look{"narrow-light", 390, 780, "light"})
	}
	for _, look := range looks {
		p.size(look.width, look.height, look.theme)
		for _, view := range []struct{ name, at, says string }{
			{"processes", "processes", "tester"},
			{"process", "processes?pid=2&of=beta", "pwos kill 2@beta"},
			{"process-there", "processes?pid=3&of=beta", "beta decides about it"},
			{"timeline", "timeline?type=Memory.Set", "results/29"},
			{"approvals", "approvals", "It is decided at beta"},
			{"denials", "denials", "Http.Fetch"},
			{"graph", "graph?correlation=release-7", "Memory.Set"},
			{"search", "search?query=results", "the best of each kernel first"},
			{"budgets", "budgets", "tester"},
			{"past", "past?until=3", "After entry 3"},
		} {
			p.showAll(view.at)
			p.reads(view.says)
			p.picture("all-" + view.name + "-" + look.name)
			p.axe("all kernels, " + view.name + " " + look.name)
		}
	}
	p.size(1360, 820, "light")

	p.showAll("timeline?type=Memory.Set") // as one timeline, alpha's call first
	order := `[...document.querySelectorAll(".calls .row")].map((el) => el.querySelector(".kernel").textContent).join(" ")`
	p.when(order + `.startsWith("alpha beta beta")`)
	p.click(".calls .row:nth-child(2)")
	p.see(`.detail[aria-label$=" of beta"] .facts`)
	p.reads("tester")
	p.showAll("denials")
	p.reads("Http.Fetch")
	p.when(`!document.querySelector(".denials button")`) // its only refusals are beta's
	p.showAll("approvals")
	p.reads("deploy/beta")
	p.when(`!document.querySelector(".question button")`)

	p.showAll("processes?pid=2&of=beta")
	p.press(".detail", "Kill…")
	p.press("dialog", "Kill")
	p.reads("Kill: kernel-alpha/builder (2)")
	if state := string(beta.do(t, "Process.Get", `{"pid":2}`)); !strings.Contains(state, `"TERMINATED"`) {
		t.Errorf("the process was not killed: %s", state)
	}

	p.choose("beta")
	p.show("timeline?kernel=beta")
	p.when(order + `.includes("beta") && !` + order + `.includes("alpha")`)
	p.show("past?kernel=beta")
	p.reads("The past of beta is in its own console.")
	beta.stop()
	p.reads("beta: the kernel beta cannot be reached. It is asked again.")
	p.when(`[...document.querySelectorAll(".choice option")].some((el) => el.textContent === "beta (away)")`)
	p.picture("one-away")
	again := c.start(t, "beta", policy)
	again.do(t, "Memory.Set", `{"pid":3,"key":"results/back","value":1}`)
	p.show("timeline?kernel=beta")
	p.reads("results/back")
	p.when(`!document.querySelector(".notices .problem")`)
}

// hostile is a kernel that answers queries with harmful data.
type hostile struct{}

const harm = `<img src=x onerror=owned=1><script>owned=1<\/script>\u001b[2J\u202e\u0000"'`

func (hostile) Ask(_ context.Context, _ *cluster.Requester, typ string, data []byte) ([]byte, uint64, error) {
	text := strings.ReplaceAll(harm, `"`, `\"`)
	entry := func(seq, at int64) string {
		return fmt.Sprintf(`{"success":false,"syscall_code":"%[1]s","pid":%[2]d,"tick":-1,"payload":{"%[1]s":"%[1]s"},"error":"%[1]s","latency_us":-9007199254740991,"seq":%[2]d,"type":"%[1]s","time":%[3]d,
			"id":"%[1]s","correlation":"%[1]s","causation":"%[1]s","status":"denied","code":403,"error_id":"%[1]s","intent":1,"request":{"%[1]s":"%[1]s"}}`, text, seq, at)
	}
	switch typ {
	case schema.AuditLog.Type:
		// The same page for each query: entries with impossible times, with descending numbers, and without an end.
		return fmt.Appendf(nil, `{"entries":[%s,%s,%s,%s],"next":9007199254740991}`, entry(5, 9007199254740991), entry(5, -9007199254740991), entry(4, 0), entry(6, 1)), 6, nil
	case schema.AuditShow.Type:
		return fmt.Appendf(nil, `{"entry":%s,"hash":"%s","prev":"","related":[]}`, entry(6, 9007199254740991), text), 6, nil
	case schema.ProcessList.Type:
		return fmt.Appendf(nil, `{"processes":[{"pid":1,"agent_id":"%[1]s","parent_pid":1,"state":"READY","priority":"NORMAL","intent":"%[1]s","role":"%[1]s","resource_quota":{"%[1]s":1e308},"birth_tick":-5,"origin":"%[1]s"},
			{"pid":-9007199254740991,"agent_id":"%[1]s","parent_pid":9,"state":"READY","priority":"LOW","intent":"","role":"","resource_quota":{},"birth_tick":0,"origin":""}]}`, text), 7, nil
	case schema.ApprovalList.Type:
		return []byte(`{"approvals":"` + text + `"}`), 7, nil // invalid
	case schema.BudgetShow.Type:
		return []byte(`{"budgets":[]}` + strings.Repeat(" ", 2_000_000)), 7, nil // too long
	}
	return nil, 0, fault.CapabilityDenied.New("%s", strings.ReplaceAll(harm, `\/`, "/"))
}

func (hostile) Accept(context.Context, *cluster.Requester, *schema.AcceptInput, func()) (*schema.AcceptOutput, error) {
	return nil, fault.CapabilityDenied.New("no")
}

func (hostile) Taken(context.Context, *schema.TakenInput) (bool, error) { return false, nil }

func (hostile) Run(context.Context, *cluster.Requester, string, int64, *schema.Errand) ([]byte, error) {
	return nil, fault.CapabilityDenied.New("no")
}
func (hostile) OpenVariables(map[string]string) (map[string]string, error) { return nil, nil }
func (hostile) EndIntent(uint64, []byte, *fault.Fault)                     {}
func (hostile) Note(schema.Request)                                        {}
func (hostile) Tick() int64                                                { return 0 }

// Answers of another kernel are shown as text, and the page still shows its own kernel.
func TestHostileKernel(t *testing.T) {
	t.Parallel()
	browserPath(t)
	c := muster(t, &member{name: "alpha"}, &member{name: "mallory"})
	alpha := c.start(t, "alpha", "")
	alpha.show(t)
	alpha.do(t, "Syscall.Spawn", `{"child_agent_id":"planner"}`)
	empty := cluster.Source{Dir: testkit.Dir(t), Synced: func() uint64 { return 0 }, Await: func(ctx context.Context, _ uint64) { <-ctx.Done() }}
	mallory := testkit.Value(cluster.Start(cluster.NodeOptions{
		Options: cluster.Options{Name: "mallory", Servers: c.bus.URL(), Key: c.members["mallory"].key, Log: slog.New(slog.DiscardHandler)},
		Members: c.file, Journal: empty, Replicas: 1,
	}))(t)
	t.Cleanup(func() { testkit.Must(t, mallory.Close()) })
	testkit.Eventually(t, "mallory reaches the bus", func() bool { return mallory.Status().Connected })
	testkit.Must(t, mallory.Serve(hostile{}, "instance of mallory", 1, cluster.Left{}))
	p := open(t)
	p.login(alpha)
	p.loadAxe()
	p.choose("*")
	for _, view := range []struct{ name, at, says string }{
		{"processes", "processes", "onerror=owned"},
		{"timeline", "timeline", "onerror=owned"},
		{"denials", "denials", "onerror=owned"},
		{"approvals", "approvals", "does not have its form"},
		{"budgets", "budgets", "may have"},
		{"search", "search?query=x", "onerror=owned"},
		{"graph", "graph?correlation=x", "onerror=owned"},
	} {
		p.showAll(view.at)
		p.reads(view.says)
		p.picture("hostile-" + view.name)
		p.axe("hostile kernel, " + view.name)
	}
	p.showAll("timeline?seq=6&of=mallory")
	p.see(".detail[aria-busy=false]")
	p.showAll("processes?pid=1&of=mallory")
	p.see(".detail .facts")
	p.showAll("processes?pid=1")
	p.press(".detail", "Kill…")
	p.press("dialog", "Kill")
	p.reads("Kill: planner (1)")
	found := testkit.Value(chromedp.Run(p.ctx, chromedp.Evaluate[string](`'owned' in window || document.querySelector('#app img, #app script') ? 'script' :
		[...document.body.textContent].some((c) => '\u001b\u202e\u0000'.includes(c)) ? 'controls' : ''`)))(t)
	if found != "" {
		t.Errorf("what the kernel has answered is part of the page: %s", found)
	}
}

package console_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestActs: the page can approve and refuse a call, grant a denied one, and pause, resume and kill a program.
func TestActs(t *testing.T) {
	t.Parallel()
	browserPath(t)
	s := watch(t, policy)
	crowd(t, s)
	p := open(t)
	p.login(s)

	yes := s.ask(t, `{"pid":2,"key":"deploy/yes","value":1}`)
	p.show("approvals")
	p.reads("deploy/yes")
	card := `[...document.querySelectorAll(".question")].find((el) => el.textContent.includes("deploy/yes"))`
	p.eval(card + `.id = "yes"`)
	p.press("#yes", "Approve")
	if err := testkit.Receive(t, yes, "the approved call"); err != nil {
		t.Errorf("the approved call: %v", err)
	}
	no := s.ask(t, `{"pid":2,"key":"deploy/no","value":1}`)
	p.reads("deploy/no")
	p.eval(strings.ReplaceAll(card, "deploy/yes", "deploy/no") + `.id = "no"`)
	p.press("#no", "Refuse")
	if err := testkit.Receive(t, no, "the refused call"); !errors.Is(err, fault.ApprovalRefused) {
		t.Errorf("the refused call: %v", err)
	}

	p.show("denials")
	p.click(`.denials button[aria-label="Grant Memory.Set to planner/reviewer"]`)
	p.reads("nothing is taken away")
	p.press("dialog", "Grant")
	p.reads("Granted: pid 3")
	s.do(t, "Memory.Set", `{"pid":3,"key":"notes/granted","value":1}`)
	s.do(t, "Memory.Get", `{"pid":3,"key":"notes/granted"}`) // a call that it was already allowed

	state := func() string { return string(s.do(t, "Process.Get", `{"pid":4}`)) }
	p.show("processes?pid=4")
	p.press(".detail", "Pause…")
	p.press("dialog", "Pause")
	p.reads("running, paused")
	if !strings.Contains(state(), `"paused":true`) {
		t.Errorf("the agent is not paused: %s", state())
	}
	p.press(".detail", "Resume…")
	p.press("dialog", "Resume")
	p.when(`!document.body.textContent.includes("running, paused")`)
	p.press(".detail", "Kill…")
	p.press("dialog", "Kill")
	p.reads("Kill: sleeper (4)")
	if !strings.Contains(state(), `"TERMINATED"`) {
		t.Errorf("the agent was not killed: %s", state())
	}
}

// TestKeys: the page can be used with the keyboard alone: a view by its number, a row by the arrows, and Escape closes its
// panel.
func TestKeys(t *testing.T) {
	t.Parallel()
	browserPath(t)
	s := watch(t, policy)
	crowd(t, s)
	p := open(t)
	p.login(s)
	p.click(".bar h1") // it gives the page the keyboard focus
	p.do(chromedp.KeyEvent("2"))
	p.see(".calls .row")
	p.do(chromedp.Focus(chromedp.CSS(".calls")), chromedp.KeyEvent(kb.ArrowUp))
	p.see(".detail .facts")
	p.see(`.calls[aria-activedescendant] .row[aria-selected=true]`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.when(`!document.querySelector(".detail")`)
	p.do(chromedp.KeyEvent("/"))
	p.when(`document.activeElement.type === "search"`)
}

// TestGraphNodes: a click or a key on a node of the graph opens its call, which shows the authority for it.
func TestGraphNodes(t *testing.T) {
	t.Parallel()
	browserPath(t)
	s := watch(t, policy)
	crowd(t, s)
	p := open(t)
	p.login(s)
	p.show("graph?correlation=release-7")
	p.see(".graph-box g[data-seq]")
	node := `[...document.querySelectorAll(".graph-box g[data-seq]")].find((el) => el.textContent.includes("Memory.Set"))`
	p.eval(node + `.id = "node"`)
	p.do(chromedp.Click(chromedp.CSS("#node")))
	p.reads("Authority")
	p.reads("granted planner/writer")
	p.reads("Previous")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.when(`!document.querySelector(".detail")`)
	for _, key := range []string{kb.Enter, " "} {
		p.eval(`document.querySelector(".graph-box g[data-seq]").focus()`)
		p.do(chromedp.KeyEvent(key))
		p.see(".detail[aria-busy=false] .facts")
		p.see(".graph-box g.chosen")
		p.do(chromedp.KeyEvent(kb.Escape))
		p.when(`!document.querySelector(".detail")`)
	}
}

// TestPast: the slider shows the value of a key, and a process, as of an entry. While it moves no query is made, and the
// final answer is for its last position.
func TestPast(t *testing.T) {
	t.Parallel()
	browserPath(t)
	s := watch(t, "")
	s.do(t, "Syscall.Spawn", `{"child_agent_id":"writer","capabilities":{"allowed_syscalls":["Memory.Set"]}}`)
	for i := range 60 {
		s.do(t, "Memory.Set", `{"pid":1,"key":"count","value":"is %d"}`, i)
	}
	entries := s.do(t, "Audit.Log", `{"type":"Memory.Set","limit":60}`)
	var log struct {
		Entries []struct{ Seq int64 }
	}
	testkit.Must(t, json.Unmarshal(entries, &log))
	p := open(t)
	p.login(s)
	p.show(fmt.Sprintf("past?until=%d&key=count", log.Entries[10].Seq))
	p.reads(`"is 10"`)
	replays := func() int {
		return strings.Count(string(s.do(t, "Audit.Log", `{"type":"Message.Replay","limit":1000}`)), `"seq":`)
	}
	before := replays()
	move := `(() => { const el = document.querySelector("input[type=range]"); const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
		for (let at = %d; at <= %d; at++) { set.call(el, at); el.dispatchEvent(new Event("input", {bubbles: true})); } })()`
	p.when(fmt.Sprintf(`document.querySelector("input[type=range]").max >= %d`, log.Entries[40].Seq)) // the event has arrived
	p.eval(fmt.Sprintf(move, log.Entries[11].Seq, log.Entries[40].Seq))
	p.reads(`"is 40"`)
	if n := replays() - before; n > 3 {
		t.Errorf("a move over 30 entries asked %d times", n)
	}
	p.when(fmt.Sprintf(`location.hash.includes("until=%d")`, log.Entries[40].Seq))
	p.do(chromedp.Focus(chromedp.CSS("input[type=range]")), chromedp.KeyEvent(kb.ArrowLeft))
	p.reads(`"is 39"`)
	p.show(fmt.Sprintf("past?until=%d&pid=1", log.Entries[40].Seq))
	p.reads("may call")
	p.show(fmt.Sprintf("past?until=%d&key=missing", log.Entries[40].Seq))
	p.see(".problem[role=alert]")
}

// TestLinkIsUsedOnce: a link opens one page; the secret stays neither in the address nor in the history.
func TestLinkIsUsedOnce(t *testing.T) {
	t.Parallel()
	browserPath(t)
	s := watch(t, "")
	link := s.console.NewLink()
	p := open(t)
	p.do(chromedp.Navigate(link))
	p.see(".bar .live.live")
	p.when(`!location.href.includes(` + quoted(link[strings.Index(link, "#")+1:]) + `)`)
	p.do(chromedp.Reload()) // the session belongs to the tab
	p.see(".bar .live.live")
	other := open(t)
	other.do(chromedp.Navigate(link))
	other.reads("this link was used already")
	if text := other.text(); strings.Contains(text, "Processes") {
		t.Errorf("the second page shows\n%s", text)
	}
}

// TestForeignPages: a name that is rebound to loopback reaches nothing, and a page of another origin can neither read, nor
// open, nor frame the console.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	browserPath(t)
	s := watch(t, "")
	port := s.console.URL()[strings.LastIndex(s.console.URL(), ":")+1:]
	p := open(t)
	p.do(chromedp.Navigate("http://rebound.example:" + port))
	p.reads("this server is not")

	evil := s.page(t, `<!doctype html><title>evil</title><iframe id=f src="`+s.console.URL()+`"></iframe>`)
	p.do(chromedp.Navigate(evil))
	for _, route := range []string{"", "api/events", "api/processes", "page/app.js"} {
		got := testkit.Value(chromedp.Run(p.ctx, chromedp.Evaluate[string](`fetch(`+quoted(s.console.URL()+route)+
			`, {headers: {Authorization: 'Bearer x'}}).then((r) => 'read ' + r.status, (err) => err.name)`, chromedp.EvalAwaitPromise)))(t)
		if got != "TypeError" {
			t.Errorf("a foreign page, /%s: %s", route, got)
		}
		got = testkit.Value(chromedp.Run(p.ctx, chromedp.Evaluate[string](`fetch(`+quoted(s.console.URL()+route)+`, {mode: 'no-cors'}).then((r) => r.type, (err) => err.name)`, chromedp.EvalAwaitPromise)))(t)
		if got != "opaque" && got != "TypeError" {
			t.Errorf("a foreign page, /%s, no-cors: %s", route, got)
		}
	}
	if text := testkit.Value(chromedp.Run(p.ctx, chromedp.Evaluate[string](`(() => { try { return document.getElementById('f').contentDocument?.body.innerText ?? '' } catch { return '' } })()`)))(t); strings.Contains(text, "pwos") {
		t.Errorf("framed: %s", text)
	}
}

// TestHostileText: a script in any string that an agent chooses is shown as text in every view, and not executed.
func TestHostileText(t *testing.T) {
	t.Parallel()
	browserPath(t)
	s := watch(t, policy)
	const script = `<img src=x onerror=owned=1><script>owned=1<\/script>\"'><svg onload=owned=1>${owned=1}javascript:owned=1`
	name := strings.NewReplacer(`<\/`, "<", "/", "", ":", "").Replace(script)
	s.do(t, "Syscall.Spawn", `{"child_agent_id":"%s","intent":"%s","role":"%s","capabilities":{"allowed_syscalls":["Memory.*","SYS_SEND_MSG"],"budget":{"calls":100}}}`, name, script, script)
	s.do(t, "Memory.Set", `{"pid":1,"key":"%s","value":{"%s":"%s"}}`, name, script, script)
	s.do(t, "Syscall.SendMsg", `{"pid":1,"receiver_pid":1,"intent":"%s","payload":"%s"}`, script, script)
	_ = s.try(t, "Syscall.Call", `{"pid":1,"syscall":"os/%s"}`, name)
	_ = s.try(t, "Http.Fetch", `{"pid":1,"url":"https://example.com/%s"}`, name)
	s.ask(t, fmt.Sprintf(`{"pid":1,"key":"deploy/%s","value":"%s"}`, name, script))
	p := open(t)
	p.login(s)
	for _, view := range []string{"processes?pid=1", "timeline", "approvals", "denials", "budgets"} {
		p.show(view)
		p.reads("onerror=owned")
	}
	s.step(t, "Memory.Set", fmt.Sprintf(`{"pid":1,"key":"%s","value":"%s"}`, name, script), "step-1", "")
	for _, view := range []string{"graph?correlation=release-7", "search?query=onerror", "past?until=20&pid=1", "past?until=20&key=" + url.QueryEscape(strings.ReplaceAll(name, `\"`, `"`))} {
		p.show(view)
		p.reads("onerror=owned")
	}
	for seq := 2; seq < 14; seq++ {
		p.show(fmt.Sprintf("timeline?seq=%d", seq))
		p.see(".detail")
		p.when(`document.querySelector(".detail[aria-busy=false]")`)
	}
	if owned := testkit.Value(chromedp.Run(p.ctx, chromedp.Evaluate[bool](`'owned' in window || document.querySelectorAll('#app img, #app script, #app svg[onload]').length > 0`)))(t); owned {
		t.Error("an agent's script is part of the page")
	}
	refused := testkit.Value(chromedp.Run(p.ctx, chromedp.Evaluate[string](`(() => { try { document.body.innerHTML = '<b>x</b>'; return 'made' } catch (err) { return err.name } })()`)))(t)
	if refused != "TypeError" {
		t.Errorf("markup of text under the page's policy: %s", refused)
	}
}

// TestManyEvents: while 20,000 events arrive the page answers clicks. The time is printed.
func TestManyEvents(t *testing.T) {
	t.Parallel()
	browserPath(t)
	s := watch(t, "")
	s.do(t, "Syscall.Spawn", `{"child_agent_id":"busy","capabilities":{"allowed_syscalls":["Memory.*"]}}`)
	p := open(t)
	p.login(s)
	p.show("timeline")
	p.eval(`window.clicks = [], window.tabs = setInterval(() => {
		const links = document.querySelectorAll('.bar nav a');
		const [at, from] = [clicks.length % 2, performance.now()];
		links[at].click();
		const seen = () => links[at].getAttribute('aria-current') === 'page' ? clicks.push(performance.now() - from) : requestAnimationFrame(seen);
		requestAnimationFrame(seen);
	}, 250)`)
	start := time.Now()
	const many = 20000
	s.pour(t, many)
	p.eval("location.hash = '#/timeline'")
	p.eval("clearInterval(tabs)")
	p.show("timeline?own=1")
	p.when(fmt.Sprintf(`[...document.querySelectorAll('.calls .seq')].some((el) => Number(el.textContent) >= %d)`, many))
	rows := testkit.Value(chromedp.Run(p.ctx, chromedp.Evaluate[int](`document.querySelectorAll('.calls .row').length`)))(t)
	clicks := testkit.Value(chromedp.Run(p.ctx, chromedp.Evaluate[[]float64]("clicks.sort((a, b) => a - b)")))(t)
	if len(clicks) == 0 || rows > 200 {
		t.Fatalf("%d clicks, %d rows are made", len(clicks), rows)
	}
	t.Logf("%d events in %v; %d clicks meanwhile: median %.0f ms, longest %.0f ms; %d rows are made",
		many, time.Since(start).Round(time.Millisecond), len(clicks), clicks[len(clicks)/2], clicks[len(clicks)-1], rows)
}

// page serves a page of another origin.
func (s *watched) page(t *testing.T, html string) string {
	t.Helper()
	return serveText(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(html))
	}))
}

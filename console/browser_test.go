package console_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/promptware-os/pwos/internal/testkit"
)

// tab is a page in a separate browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// open starts a browser with an empty page.
func open(t *testing.T) *tab {
	t.Helper()
	path := browserPath(t)
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1360, 820),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("host-resolver-rules", "MAP rebound.example 127.0.0.1"),
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	p := &tab{t, ctx}
	t.Cleanup(func() {
		if err := chromedp.Cancel(p.ctx); err != nil {
			t.Logf("end browser: %v", err)
		}
		cancel()
	})
	p.do(chromedp.Navigate("about:blank"))
	return p
}

// login opens a link of the console.
func (p *tab) login(s *watched) {
	p.t.Helper()
	p.do(chromedp.Navigate(s.console.NewLink()))
	p.see(".bar .live.live")
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatalf("%v\n%s", err, p.text())
	}
}

// see waits until the page has an element.
func (p *tab) see(selector string) {
	p.t.Helper()
	p.when("document.querySelector(" + quoted(selector) + ")")
}

// reads waits until the page has a text.
func (p *tab) reads(text string) {
	p.t.Helper()
	p.when("document.body.textContent.includes(" + quoted(text) + ")")
}

// when waits until an expression is true.
func (p *tab) when(expression string) {
	p.t.Helper()
	for limit := time.Now().Add(testkit.Patience / 4); ; <-time.After(20 * time.Millisecond) {
		yes, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		switch {
		case err == nil && yes:
			return
		case time.Now().After(limit):
			p.t.Fatalf("not so: %s (%v)\n%s", expression, err, p.text())
		}
	}
}

// text returns the text of the page, for a failure.
func (p *tab) text() string {
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText.slice(0, 3000)"))
	if err != nil {
		return err.Error()
	}
	return text
}

// click clicks the first matching element, when it can be clicked.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.when("(() => { const el = document.querySelector(" + quoted(selector) + "); return el && !el.disabled })()")
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// press clicks the button with a text.
func (p *tab) press(within, text string) {
	p.t.Helper()
	find := "[..." + "document.querySelectorAll(" + quoted(within+" button") + ")].find((el) => el.textContent.trim() === " + quoted(text) + " && !el.disabled)"
	p.when(find)
	p.eval(find + ".setAttribute('data-press', '1')")
	p.do(chromedp.Click(chromedp.CSS("[data-press]")))
	p.eval("document.querySelector('[data-press]')?.removeAttribute('data-press')")
}

func (p *tab) eval(expression string) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[any]("void ("+expression+")")); err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
}

// show goes to a view of the page.
func (p *tab) show(view string) {
	p.t.Helper()
	p.eval("location.hash = " + quoted("#/"+view))
}

// size changes the window, and the theme.
func (p *tab) size(width, height int64, theme string) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
	}); err != nil {
		p.t.Fatal(err)
	}
}

// picture writes a screenshot to the directory that PWOS_PICTURES names, if it is set.
func (p *tab) picture(name string) {
	p.t.Helper()
	dir := os.Getenv("PWOS_PICTURES")
	if dir == "" {
		return
	}
	image := testkit.Value(chromedp.Run(p.ctx, chromedp.CaptureScreenshot()))(p.t)
	testkit.Must(p.t, os.WriteFile(filepath.Join(dir, name+".png"), image, 0o644))
}

// axe reports the findings of axe-core for the page.
func (p *tab) axe(where string) {
	p.t.Helper()
	found, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]string](`axe.run(document, {resultTypes: ['violations']}).then((result) =>
		result.violations.flatMap((v) => v.nodes.map((node) => v.id + ' (' + v.impact + '): ' + v.help + ': ' + node.html.slice(0, 160) + ' ' + (node.any[0]?.message ?? '')))) `, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", where, err)
	}
	if len(found) > 0 {
		p.t.Errorf("%s: axe-core finds\n  %s", where, strings.Join(found, "\n  "))
	}
}

// loadAxe loads axe-core into the page despite its policy, as a developer's tool does.
func (p *tab) loadAxe() {
	p.t.Helper()
	code := testkit.ReadFile(p.t, "testdata/axe.min.js")
	if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[any](code+"; undefined")); err != nil {
		p.t.Fatal(fmt.Errorf("load axe-core: %w", err))
	}
}

package http_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// row is a row of Audit.Log with the members of a verdict.
type row struct {
	id, status string
	code       float64
}

// rowsOf returns the fetches of a process in the log. A filter for another process must return none of them.
func (p *place) rowsOf(pid float64) (rows []row) {
	p.t.Helper()
	for _, e := range done(p.t, p.dial(), "Audit.Log", object{"pid": pid, "type": "Http.Fetch", "limit": 1000})["entries"].([]any) {
		e := e.(object)
		if e["pid"] != pid || e["type"] != "Http.Fetch" || e["success"] != (e["status"] == "ok") {
			p.t.Errorf("asked for the fetches of pid %v, got %v", pid, e)
		}
		code, _ := e["code"].(float64)
		rows = append(rows, row{e["id"].(string), e["status"].(string), code})
	}
	return rows
}

// counted returns the number of fetches in the metrics, and how many of them were denied.
func (p *place) counted() (total, denied float64) {
	p.t.Helper()
	m := done(p.t, p.dial(), "Audit.Metrics", object{})
	total, _ = m["by_code"].(object)["Http.Fetch"].(float64)
	denied, _ = m["denied_by_code"].(object)["Http.Fetch"].(float64)
	return total, denied
}

// TestVerdicts shows that the outcome of a fetch, at whatever stage it is decided, is in the log on the caller's row and is
// counted once, also after a restart.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	var elsewhere string
	p := start(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		case "/cut":
			panic(http.ErrAbortHandler)
		}
	})
	elsewhere = strings.Replace(p.server.URL, "127.0.0.1", "127.0.0.2", 1)
	c := p.dial()
	pid := agent(t, c, object{"hosts": []string{"127.0.0.1:*", "*.example.com"}})
	r := p.raw()
	for i, url := range []string{p.server.URL, elsewhere, "http://a.example.com/", "no url", p.server.URL + "/away", p.server.URL + "/cut"} {
		r.send(fmt.Sprintf(`{"kind":"command","type":"Http.Fetch","data":{"pid":%v,"url":%q},"metadata":{"id":"f-%d","timestamp":1}}`, pid, url, i))
		_ = r.read()
	}
	want := []row{{"f-0", "ok", 0}, {"f-1", "denied", 403}, {"f-2", "denied", 403}, {"f-3", "failed", 422}, {"f-4", "denied", 403}, {"f-5", "failed", 502}}
	check := func() {
		t.Helper()
		if got := p.rowsOf(pid); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("rows %v, want %v", got, want)
		}
		if got := p.rowsOf(0); len(got) > 0 {
			t.Errorf("on the operator's rows: %v", got)
		}
		if total, denied := p.counted(); total != 6 || denied != 3 {
			t.Errorf("counted %v, %v denied", total, denied)
		}
	}
	check()
	// A fetch that fails without the network has not started.
	if n := strings.Count(p.Journal(p.t), `{"begun":true}`); n != 3 {
		t.Errorf("%d were begun", n)
	}
	p.stop()
	p.begin()
	check()
}

// TestVerdictOfTheKilled shows the log entry of a fetch during which the kernel is killed: it is running, and afterwards
// its outcome is unknown.
func TestVerdictOfTheKilled(t *testing.T) {
	t.Parallel()
	var h hanging
	p := newPlace(t, h.serve)
	testkit.Must(t, os.WriteFile(p.Path("config.toml"), fmt.Appendf(nil, "[http]\nallow = [\"127.0.0.0/8\"]\nca_file = %q\n", p.Path("ca.pem")), 0o600))
	kill := p.launch()
	pid := agent(t, p.dial(), object{"hosts": []string{"127.0.0.1:*"}})
	done(t, p.dial(), "Memory.Set", object{"key": "k", "value": 1})
	p.raw().send(fmt.Sprintf(`{"kind":"command","type":"Http.Fetch","data":{"pid":%v,"timeout":30000,"url":%q},"metadata":{"id":"mine","timestamp":1}}`, pid, p.server.URL))
	testkit.Eventually(t, "the server gets the request", func() bool { return h.asked.Load() == 1 })
	if got := p.rowsOf(pid); fmt.Sprint(got) != "[{mine running 0}]" {
		t.Errorf("meanwhile: rows %v", got)
	}
	if total, _ := p.counted(); total != 0 {
		t.Errorf("meanwhile: counted %v", total)
	}
	for range 2 {
		kill()
		kill = p.launch()
		if got := p.rowsOf(pid); fmt.Sprint(got) != "[{mine unknown 500}]" {
			t.Errorf("afterwards: rows %v", got)
		}
		if total, denied := p.counted(); total != 1 || denied != 0 {
			t.Errorf("afterwards: counted %v, %v denied", total, denied)
		}
		if m := done(t, p.dial(), "Audit.Metrics", object{}); m["by_code"].(object)["Memory.Set"] != 1.0 {
			t.Errorf("the calls before the restart are not counted: %v", m)
		}
	}
	kill()
}

package export_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/export/metrics"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

var update = flag.Bool("update", false, "write the list of metrics into docs/export.md")

// exporter serves the metrics of a kernel that the test can restart.
type exporter struct {
	*testkit.Place
	url  string
	stop func()

	mu       sync.Mutex
	troubles []error
}

func serve(t *testing.T, token string) *exporter {
	t.Helper()
	e := &exporter{Place: testkit.NewPlace(t, "")}
	e.stop = testkernel.Start(t, testkernel.Settings(e.Place))
	s := metrics.NewServer(metrics.Options{
		Version: "v1", Token: token,
		Dial: func(ctx context.Context) (*client.Client, error) {
			return client.Dial(ctx, client.Options{RuntimeDir: e.RuntimeDir()})
		},
		Trouble: func(err error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.troubles = append(e.troubles, err)
		},
	})
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	e.url = web.URL
	return e
}

func (e *exporter) scrape(t *testing.T) string {
	t.Helper()
	code, text := get(t, http.MethodGet, e.url+"/metrics", "", "")
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, text)
	}
	return text
}

func get(t *testing.T, method, url, host, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	testkit.Must(t, err)
	req.Host = host
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	answer, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer func() { testkit.Must(t, answer.Body.Close()) }()
	text, err := io.ReadAll(answer.Body)
	testkit.Must(t, err)
	return answer.StatusCode, string(text)
}

func want(t *testing.T, text string, lines ...string) {
	t.Helper()
	all := strings.Split(text, "\n")
	for _, line := range lines {
		if !slices.Contains(all, line) {
			t.Errorf("no line %q in:\n%s", line, text)
		}
	}
}

// documented compares the list in docs/export.md with the metrics of a scrape that has all of them.
func documented(t *testing.T, scrape string) {
	t.Helper()
	const name = "../../docs/export.md"
	var metrics []string
	for _, found := range regexp.MustCompile(`(?m)^# HELP (pwos_\w+) .*\n# TYPE .*\npwos_\w+(?:\{(\w+)=)?`).FindAllStringSubmatch(scrape, -1) {
		metric := found[1]
		if found[2] != "" {
			metric += "{" + found[2] + "}"
		}
		metrics = append(metrics, "`"+metric+"`")
	}
	page := testkit.ReadFile(t, name)
	block := regexp.MustCompile("(?s)(<!-- generated: go test ./test/export -run TestScrape -update -->\n\n).*?(\n<!-- end -->\n)")
	want := block.ReplaceAllString(page, "${1}"+strings.Join(metrics, ", ")+"\n${2}")
	switch {
	case !block.MatchString(page):
		t.Fatalf("%s has no list of metrics", name)
	case *update:
		testkit.Must(t, os.WriteFile(name, []byte(want), 0o644))
	case page != want:
		t.Errorf("the list in %s is not that of the metrics: go test ./test/export -run TestScrape -update", name)
	}
}

// TestScrape: the metrics have the kernel's counters, are those of docs/export.md, pass Prometheus' linter, and have no process as a label.
func TestScrape(t *testing.T) {
	t.Parallel()
	e := serve(t, "")
	c := testkernel.Dial(t, e.RuntimeDir())
	ask := func(typ, data string) { _, _ = c.Call(t.Context(), schema.KindCommand, typ, []byte(data)) } // a refusal is an error
	ask("Syscall.Spawn", `{"child_agent_id":"busy","capabilities":{"allowed_syscalls":["Memory.*"],"budget":{"calls":10,"usd":2.5}}}`)
	ask("Syscall.Spawn", `{"child_agent_id":"free","capabilities":{"allowed_syscalls":["Memory.*"]}}`)
	ask("Memory.Set", `{"pid":1,"key":"a","value":1}`)
	ask("Memory.Set", `{"pid":1,"key":"a","value":2}`)
	ask("Syscall.Alloc", `{"pid":1,"resource_id":"gpu","amount":1}`)
	text := e.scrape(t)
	want(t, text, "pwos_up 1", `pwos_build_info{version="v1"} 1`, `pwos_calls_total{type="Memory.Set"} 2`, `pwos_calls_total{type="Syscall.Spawn"} 2`,
		`pwos_calls_denied_total{type="Syscall.Alloc"} 1`, `pwos_processes{state="READY"} 2`, `pwos_processes{state="TERMINATED"} 0`,
		"pwos_approvals_waiting 0", "pwos_journal_refusing 0", "pwos_warnings 0", `pwos_budget_given{unit="calls"} 10`,
		`pwos_budget_left{unit="usd"} 2.5`)
	for _, pattern := range []string{`(?m)^pwos_journal_entries_total [1-9]`, `(?m)^pwos_call_latency_p99_seconds\{type="Memory\.Set"\} [0-9.e-]+$`} {
		if !regexp.MustCompile(pattern).MatchString(text) {
			t.Errorf("nothing like %s in:\n%s", pattern, text)
		}
	}
	if strings.Contains(text, "pid") {
		t.Errorf("a process occurs as a label:\n%s", text)
	}
	documented(t, text)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	testkit.Must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if again := e.scrape(t); !strings.Contains(again, `pwos_calls_total{type="Audit.Metrics"} 1`) {
		t.Errorf("the first scrape is not counted:\n%s", again)
	}
}

// TestKernelAway: while the kernel does not run, the exporter serves up 0; it connects again later, and reports each
// change once.
func TestKernelAway(t *testing.T) {
	t.Parallel()
	e := serve(t, "")
	want(t, e.scrape(t), "pwos_up 1")
	e.stop()
	for range 2 {
		text := e.scrape(t)
		want(t, text, "pwos_up 0")
		if strings.Contains(text, "pwos_calls_total") {
			t.Errorf("counters of a kernel that does not run:\n%s", text)
		}
	}
	testkernel.Start(t, testkernel.Settings(e.Place))
	want(t, e.scrape(t), "pwos_up 1")
	if len(e.troubles) != 2 || e.troubles[0] == nil || e.troubles[1] != nil {
		t.Errorf("reported %v, want an error and then nil", e.troubles)
	}
}

// TestScrapesAtOnce: concurrent scrapes run one after the other, also if some are cancelled.
func TestScrapesAtOnce(t *testing.T) {
	t.Parallel()
	e := serve(t, "")
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/metrics", nil)
			if err != nil {
				t.Error(err)
				return
			}
			if i%4 == 0 {
				cancel()
			}
			answer, err := http.DefaultClient.Do(req)
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			defer func() { _ = answer.Body.Close() }()
			if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), "pwos_up 1") {
				t.Errorf("got error %v and:\n%s", err, text)
			}
		})
	}
	all.Wait()
	want(t, e.scrape(t), "pwos_up 1")
}

// TestRequests: requests are checked for method, path, host and token.
func TestRequests(t *testing.T) {
	t.Parallel()
	open, guarded := serve(t, ""), serve(t, "sesame-sesame-16")
	for _, tt := range []struct {
		e                         *exporter
		method, path, host, token string
		code                      int
	}{
		{open, http.MethodGet, "/metrics", "", "", 200},
		{open, http.MethodHead, "/metrics", "localhost:9", "", 200},
		{open, http.MethodGet, "/metrics", "[::1]", "", 200},
		{open, http.MethodGet, "/metrics", "evil.example", "", 421},
		{open, http.MethodGet, "/metrics", "127.0.0.1.evil.example:80", "", 421},
		{open, http.MethodPost, "/metrics", "", "", 405},
		{open, http.MethodGet, "/", "", "", 404},
		{guarded, http.MethodGet, "/metrics", "prometheus.example", "Bearer sesame-sesame-16", 200},
		{guarded, http.MethodGet, "/metrics", "", "", 401},
		{guarded, http.MethodGet, "/metrics", "", "Bearer sesame-sesame-17", 401},
		{guarded, http.MethodGet, "/metrics", "", "sesame-sesame-16", 401},
		{guarded, http.MethodGet, "/nothing", "", "", 401},
	} {
		if code, text := get(t, tt.method, tt.e.url+tt.path, tt.host, tt.token); code != tt.code {
			t.Errorf("%s %s of %q bearing %q: status %d, want %d: %s", tt.method, tt.path, tt.host, tt.token, code, tt.code, text)
		}
	}
}

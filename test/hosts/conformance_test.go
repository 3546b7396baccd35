package hosts_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// fixtures are the checks of the protocol's own suite that need the tools, prompts and resources of its example server.
// resources-subscribe also needs resources that report changes, which pwos does not offer; the two of SSE are warnings
// about a tool of the example server that closes its stream.
var fixtures = []string{
	"tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content",
	"tools-call-with-logging", "tools-call-error", "tools-call-with-progress", "tools-call-sampling", "tools-call-elicitation",
	"elicitation-sep1034-general", "elicitation-sep1330-general", "json-schema-2020-12-tool-found",
	"resources-read-text", "resources-read-binary", "resources-templates-read", "resources-subscribe", "resources-unsubscribe",
	"server-sse-priming-event", "server-sse-retry-field",
	"prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image",
}

// check is a result of the suite.
type check struct{ ID, Status, ErrorMessage string }

// TestConformance: every check of the protocol's own suite passes without a warning, except for those that need fixtures.
func TestConformance(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if _, err := os.Stat(filepath.Join(p.bin, "conformance")); err != nil {
		t.Skipf("npm has not installed the suite: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server := p.command(ctx, "pwos", "mcp", "serve", "--as", "suite", "--allow", "*", "--http", "127.0.0.1:0")
	stderr, err := server.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, server.Start())
	said, err := bufio.NewReader(stderr).ReadString('\n')
	testkit.Must(t, err)
	at := regexp.MustCompile(`serving at (http://\S+); .* in (\S+)`).FindStringSubmatch(said)
	if at == nil {
		t.Fatalf("the server says %q", said)
	}
	target, err := url.Parse(at[1])
	testkit.Must(t, err)
	token, err := os.ReadFile(at[2])
	testkit.Must(t, err)
	target.Path = ""
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { // the suite has no token
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}})
	out, failed := p.try("conformance", "server", "--url", proxy.URL+"/mcp", "--suite", "all", "-o", p.Path("results")) // it fails because of the fixtures
	proxy.Close()
	testkit.Must(t, server.Process.Signal(os.Interrupt))
	_ = server.Wait() // it was interrupted
	results, err := filepath.Glob(p.Path("results/*/checks.json"))
	testkit.Must(t, err)
	passed, others := 0, map[string]string{}
	for _, file := range results {
		text, err := os.ReadFile(file)
		testkit.Must(t, err)
		var checks []check
		testkit.Must(t, json.Unmarshal(text, &checks))
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				passed++
			case "INFO":
			default:
				others[c.ID] = fmt.Sprint(c.Status, ": ", c.ErrorMessage)
			}
		}
	}
	t.Logf("%d checks passed", passed)
	for _, id := range slices.Sorted(maps.Keys(others)) {
		if !slices.Contains(fixtures, id) {
			t.Errorf("%s: %s", id, others[id])
		}
	}
	for _, id := range fixtures {
		if others[id] == "" {
			t.Errorf("%s did not fail", id)
		}
	}
	if passed < 11 || len(results) == 0 {
		t.Errorf("%v: %s", failed, out)
	}
}

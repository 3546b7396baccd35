package http_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
)

// TestPolicyOfRedirects: a redirect does not lead around a rule about addresses.
func TestPolicyOfRedirects(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Pointer[string]
	p := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, *elsewhere.Load(), http.StatusFound)
		}
	}, func(cfg *config.Config) {
		cfg.File = filepath.Join(filepath.Dir(cfg.StateDir), "c", "config.toml")
		must(t, os.MkdirAll(filepath.Dir(cfg.File), 0o700))
		must(t, os.WriteFile(filepath.Join(filepath.Dir(cfg.File), "policy.cedar"),
			[]byte(`@id("no-private") forbid(principal, action == Syscall::"Http.Fetch", resource) when {context.args.url like "*/private*"};`), 0o600))
	})
	c := p.dial()
	pid := agent(t, c, object{"hosts": []string{"127.0.0.1:*"}})
	for _, to := range []string{"/private/a", strings.ToUpper("https") + p.server.URL[len("https"):] + "/public/../private"} {
		elsewhere.Store(&to)
		refused(t, call(t, c, "Http.Fetch", object{"pid": pid, "url": p.server.URL + "/away"}), 403, "redirected elsewhere", `"no-private"`)
	}
	refused(t, call(t, c, "Http.Fetch", object{"pid": pid, "url": p.server.URL + "/private"}), 403, `"no-private"`)
	to := "/public"
	elsewhere.Store(&to)
	done(t, c, "Http.Fetch", object{"pid": pid, "url": p.server.URL + "/away"})
}

package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHangupReloads: SIGHUP has the policy read again, and a file that is not valid leaves it as it was.
func TestHangupReloads(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	config := filepath.Join(dir, "c", "config.toml")
	must(t, os.MkdirAll(filepath.Dir(config), 0o700))
	must(t, os.WriteFile(config, nil, 0o600))
	d := spawn(t, dir, nil, "--config", config).serving(t)
	p := dial(t, d.KernelSocket)
	rules := filepath.Join(filepath.Dir(config), "policy.cedar")
	has := func(what string) func() bool {
		return func() bool { return strings.Contains(string(p.ask("query", "Policy.Show", `{}`).Data), what) }
	}
	must(t, os.WriteFile(rules, []byte(`@id("first") forbid(principal, action, resource);`), 0o600))
	must(t, d.cmd.Process.Signal(syscall.SIGHUP))
	eventually(t, "the rule is there", has(`"id":"first"`))
	must(t, os.WriteFile(rules, []byte(`permit(principal, action, resource);`), 0o600))
	must(t, d.cmd.Process.Signal(syscall.SIGHUP))
	eventually(t, "the reload failed", func() bool { return strings.Contains(d.stderr.String(), "the policy stays as it was") })
	if !has(`"id":"first"`)() {
		t.Error("what was valid is gone")
	}
	must(t, d.cmd.Process.Signal(syscall.SIGTERM))
	d.wantExit(t, 0)
}

package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestHangupReloads: SIGHUP reloads the policy, and an invalid file leaves the old one in force.
func TestHangupReloads(t *testing.T) {
	t.Parallel()
	dir := testkit.Dir(t)
	config := filepath.Join(dir, "c", "config.toml")
	testkit.Must(t, os.MkdirAll(filepath.Dir(config), 0o700))
	testkit.Must(t, os.WriteFile(config, nil, 0o600))
	d := spawn(t, dir, nil, "--config", config).serving(t)
	p := dial(t, d.KernelSocket)
	rules := filepath.Join(filepath.Dir(config), "policy.cedar")
	has := func(what string) func() bool {
		return func() bool { return strings.Contains(string(p.ask("query", "Policy.Show", `{}`).Data), what) }
	}
	testkit.Must(t, os.WriteFile(rules, []byte(`@id("first") forbid(principal, action, resource);`), 0o600))
	testkit.Must(t, d.cmd.Process.Signal(syscall.SIGHUP))
	testkit.Eventually(t, "the rule is there", has(`"id":"first"`))
	testkit.Must(t, os.WriteFile(rules, []byte(`permit(principal, action, resource);`), 0o600))
	testkit.Must(t, d.cmd.Process.Signal(syscall.SIGHUP))
	testkit.Eventually(t, "the reload failed", func() bool { return strings.Contains(d.stderr.String(), "the policy is unchanged") })
	if !has(`"id":"first"`)() {
		t.Error("a failed reload has removed the valid policy")
	}
	testkit.Must(t, d.cmd.Process.Signal(syscall.SIGTERM))
	d.wantExit(t, 0)
}

package hosts_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestLogins: the credential that a user has in the environment reaches the model of each host by the kernel, for a budget that counts it,
// and nothing inside has it: no variable, no process, no file; nor has any file of the kernel.
func TestLogins(t *testing.T) {
	t.Parallel()
	hosts := presetHosts()
	for i := range hosts {
		hosts[i].login = hosts[i].model
	}
	subscribed := hosts[0] // of Claude Code
	subscribed.login, subscribed.header = "claude", "Authorization: Bearer"
	for _, h := range append(hosts, subscribed) {
		t.Run(h.name+"/"+h.login, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			m := newModel(t, h.command("sh ./look"))
			testkit.Must(t, os.WriteFile(p.Path("project/look"), []byte("(env; cat /proc/*/environ | tr '\\0' '\\n'; grep -rsa "+canary[:9]+"[^x]"+canary[10:]+" ~ . /tmp) >seen 2>&1; true"), 0o600))
			shipped := new(config.Config).Upstreams()[h.login]
			if shipped.Header != h.header {
				t.Errorf("the key is sent as %s", shipped.Header)
			}
			p.configure(fmt.Sprintf("[upstream.%s]\nurl = %q\nheader = %q\nfrom = %q\nallow = [\"%s\"]\n",
				h.login, m.url+h.url, h.header, "login:"+h.login, strings.Join(shipped.Allow, `", "`)))
			p.env = append(p.env, h.env...)
			p.env = append(p.env, preset.LoginNamed(h.login).Variable+"="+canary)
			out := p.run("pwos", append([]string{"run", "--budget", "usd=100", "--", h.name}, h.args...)...)
			m.expect(out, "")
			key := canary
			if strings.HasSuffix(h.header, "Bearer") {
				key = "Bearer " + key
			}
			m.keyed(key)
			if seen := testkit.ReadFile(t, p.Path("project/seen")); strings.Contains(seen, canary) || !strings.Contains(seen, "PWOS_UPSTREAM_") {
				t.Errorf("inside there is %s", seen)
			}
			if log := p.run("pwos", "audit", "log", "--type", "Net.Request"); !strings.Contains(log, `"micro_usd":`) {
				t.Errorf("nothing was counted: %s", log)
			}
			p.run("pwos", "shutdown")
			for _, dir := range []string{p.StateDir(), p.RuntimeDir(), p.Path("home")} {
				if _, err := os.Stat(dir); err == nil {
					if found := testkit.FilesWith(t, canary, dir); found != nil {
						t.Errorf("%v hold the credential", found)
					}
				}
			}
		})
	}
}

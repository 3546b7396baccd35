package hosts_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestMailNotice: a host that has done its turn goes on when mail has come meanwhile, and its model hears what it says and from whom, once.
func TestMailNotice(t *testing.T) {
	t.Parallel()
	for _, h := range presetHosts() {
		if h.name != "claude" && h.name != "codex" {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			work := h.command("true")
			work.before = func() {
				p.run("pwos", "spawn", "reviewer", "--allow", "Syscall.SendMsg")
				p.run("pwos", "call", "Syscall.SendMsg", "pid=2", "receiver_pid=1", "intent=review", `payload={"says":"xyzzy is missing"}`)
			}
			m := newModel(t, work)
			p.configure(fmt.Sprintf("[upstream.%s]\nurl = %q\nheader = %q\nfrom = %q\nallow = [\"* /…\"]\n", h.model, m.url+h.url, h.header, "login:"+h.model))
			p.run("sh", "-c", "printf key | pwos login "+h.model)
			p.env = append(p.env, "ANTHROPIC_API_KEY=")
			out := p.run("pwos", append([]string{h.name}, h.args...)...)
			m.expect(out, "")
			if last := m.whole(); !strings.Contains(last, "xyzzy is missing") || !strings.Contains(last, `reviewer\" (pid 2)`) {
				t.Errorf("the model did not hear of the mail, or not from whom: %s", last[max(0, len(last)-3000):])
			}
			if received := p.run("pwos", "audit", "log", "--type", "Ipc.Receive"); strings.Count(received, "xyzzy") != 1 || strings.Count(received, "\n") < 2 {
				t.Errorf("it hears of it not once, or is not asked at each end: %s", received)
			}
		})
	}
}

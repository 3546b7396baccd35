package scripts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/screen"
	"github.com/promptware-os/pwos/internal/testkit"
)

// asksAtTerminal runs an agent that makes a call about which a rule asks, says what it was told, and does what then says.
func asksAtTerminal(t *testing.T, config, then string) (place, *screen.Screen) {
	t.Helper()
	p := settle(t)
	dir := p.Path("home/.config/pwos")
	testkit.Must(t, os.MkdirAll(dir, 0o700))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[approval]\nwait = \"10m\"\n"+config), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "policy.cedar"), []byte(
		`@id("careful") @ask("30m") forbid(principal, action == Syscall::"Memory.Set", resource) when {context.args.key like "prod/*"};`), 0o600))
	s := sitDown(t, p, "run", "--dir", t.TempDir(), "--home", t.TempDir(), "--name", "shell", "--allow", "Memory.*", "--", "bash", "-c", `read -r -u 3 hello; printf '{"kind":"reply","type":"Syscall.Authenticate","data":null}\n' >&3
printf '{"kind":"command","type":"Memory.Set","data":{"key":"prod/a","value":7},"metadata":{"id":"m","timestamp":0}}\n' >&3; read -r -u 3 answer; echo "got ${answer:0:300}"; `+then+`exit 5`)
	usual := s.Settings()
	t.Cleanup(func() {
		if after := s.Settings(); after.Lflag != usual.Lflag {
			t.Errorf("the terminal's settings are %+v, were %+v", after, usual)
		}
	})
	return p, s
}

// TestPanel: a question of the agent is shown at the terminal of its pwos run. No key is an answer but one after the attention chord and
// after the terminal has shown the question; then the call goes on, or the agent is told why not.
func TestPanel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config, chord string
		keys          []string
		want, state   string
	}{
		"once":     {"", "\x1d", []string{"y"}, `got \{"kind":"reply","type":"Memory\.Set"`, `"state":"used"`},
		"an hour":  {"", "\x1d", []string{"a"}, `got \{"kind":"reply","type":"Memory\.Set"`, `"until":`},
		"refused":  {"", "\x1d", []string{"n", "Not on a Friday", "\r"}, `got \{"kind":"error".*Memory\.Set was refused: Not on a Friday`, `"why":"Not on a Friday"`},
		"a choice": {"[terminal]\nattention = \"ctrl-g\"\nnotify = \"off\"\n", "\x07", []string{"y"}, `got \{"kind":"reply","type":"Memory\.Set"`, `"state":"used"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s := asksAtTerminal(t, tt.config, "")
			s.Expect(`\x1b\[6n`)
			s.Enter("\x1b[5;1R")
			s.Expect(`shell wants to`)
			s.Expect(`call Memory\.Set`)
			s.Expect(`key: prod/a`)
			s.Enter("y")
			s.Enter("\x1b[200~" + tt.chord + "y\x1b[201~")
			s.Enter(tt.chord + "y") // no read of its own
			s.Expect(`\x1b\[5n`)
			if list := p.pwos(t, "approvals", "--json"); !strings.Contains(list, `"state":"waiting"`) {
				t.Errorf("the question has ended: %s", list)
			}
			s.Enter("\x1b[0n")
			for _, k := range tt.keys {
				s.Enter(k)
				if len(k) > 1 || k == "n" {
					s.Expect("told: " + strings.TrimPrefix(k, "n")) // each is a read
				}
			}
			s.Expect(tt.want)
			if list := p.pwos(t, "approvals", "--all", "--json"); !strings.Contains(list, tt.state) {
				t.Errorf("the question is %s", list)
			}
			if got := s.Status(); got != 5 {
				t.Errorf("exit status %d", got)
			}
			testkit.Must(t, p.kill())
		})
	}
}

// TestPanelOff: where the configuration has switched it off, nothing is drawn, and the chord is the program's.
func TestPanelOff(t *testing.T) {
	t.Parallel()
	p, s := asksAtTerminal(t, "[terminal]\nattention = \"off\"\n", `read -r -s -n 1 key; printf 'key %q\n' "$key"; `)
	testkit.Eventually(t, "the call waits", func() bool { return strings.Contains(p.pwos(t, "approvals", "--json"), `"state":"waiting"`) })
	s.Enter("\x1d")
	p.pwos(t, "approve", "q-1")
	if shown := s.Expect(`(?s).*got \{"kind":"reply".*key \$'\\035'`); strings.Contains(shown, "wants to") {
		t.Errorf("the terminal shows %q", shown)
	}
	s.Status()
	testkit.Must(t, p.kill())
}

// TestPanelAnsweredElsewhere: a question that is shown at the terminal can be answered elsewhere.
func TestPanelAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	p, s := asksAtTerminal(t, "", "")
	s.Expect(`\x1b\[6n`)
	s.Enter("\x1b[5;1R")
	s.Expect(`key: prod/a`)
	p.pwos(t, "approve", "q-1")
	s.Expect(`got \{"kind":"reply"`)
	if got := s.Status(); got != 5 {
		t.Errorf("exit status %d", got)
	}
	testkit.Must(t, p.kill())
}

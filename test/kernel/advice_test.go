package kernel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// worst are names with all that shells interpret, which none of them may do.
var worst = []string{
	"!\"#$%&'()*+,-.:;<=>?@[\\]^_`{|}~", "Bash$(evil>PWNED)", "`evil`", "a;evil;'evil'", "a\\'; evil; '", "a|evil&evil", "é\"$(evil)\"",
}

// plain are characters that no shell interprets.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_.:/@"

// TestAdvice: a person who pastes a command of a refusal into a shell executes pwos and nothing else, whatever an agent has
// put into whichever member of a call, and a name is one word of that command.
func TestAdvice(t *testing.T) {
	t.Parallel()
	d := start(t, func(cfg *config.Config) { cfg.Root = testkit.Dir(t) })
	operator := d.dial(t)
	advice := make(map[string]string) // the calls, by the command
	for _, grant := range []string{
		`{"allowed_syscalls":[]}`,
		`{"allowed_syscalls":["Memory.Get"],"expires_at_tick":0}`,
		`{"allowed_syscalls":["Tool:claude/Read","Call:x/y","Http.Fetch","Syscall.Spawn","Syscall.Alloc","Capability.*","Process.*"],"resource_quotas":{"gpu":1},"http":{"hosts":["a.test"]}}`,
		`{"allowed_syscalls":["*"],"http":{"hosts":["a.test"]}}`,
	} {
		agent := d.dial(t)
		agent.attach(fmt.Sprintf("agent-%d", len(grant)), `,"capabilities":`+grant)
		operator.ask("Clock.Advance", `{"ticks":1}`)
		for _, typ := range slices.Sorted(maps.Keys(minimal())) {
			if strings.HasSuffix(typ, ".Subscribe") { // its events are no answers
				continue
			}
			for _, data := range spoiled(t, minimal()[typ]) {
				for _, command := range testkit.Commands(agent.answered(typ, data)) {
					advice[command] = typ + " " + data
				}
			}
		}
	}
	for _, row := range fault.Catalogue() {
		if strings.ContainsAny(row.Fix, "`$\\|&<>*?!{}~#") {
			t.Errorf("the fix of %s has what a shell interprets: %s", row.ID, row.Fix)
		}
	}
	commands := slices.Sorted(maps.Keys(advice))
	commands = slices.DeleteFunc(commands, func(c string) bool { return strings.Trim(c, plain) == "" })
	if len(commands) < len(worst)/2 {
		t.Errorf("%d commands have a name of an agent's: %q", len(commands), commands)
	}
	for _, shell := range testkit.Shells() {
		t.Run(fmt.Sprint(shell), func(t *testing.T) {
			t.Parallel()
			desk := testkit.NewDesk(t, "evil")
			for _, command := range commands {
				executed := desk.Paste(t, shell, command)
				if len(executed) != 1 || executed[0][0] != "pwos" {
					t.Errorf("%s\nadvises %s\nwhich executes %q", advice[command], command, executed)
					continue
				}
				for _, word := range executed[0] {
					name, err := url.PathUnescape(word) // a path is written as a URI has it
					if strings.Contains(word, "evil") && !slices.ContainsFunc(worst, func(given string) bool {
						return strings.HasSuffix(word, given) || err == nil && strings.HasSuffix(name, given)
					}) {
						t.Errorf("%s\nadvises %s\nwhich has the word %q", advice[command], command, word)
					}
				}
			}
		})
	}
}

// spoiled returns the data of a call with a hostile name in place of each of its strings.
func spoiled(t *testing.T, data string) (all []string) {
	for _, name := range worst {
		for _, form := range []string{"%s", "a/%s", "https://%s/"} {
			text := fmt.Sprintf(form, name)
			var members map[string]any
			testkit.Must(t, json.Unmarshal([]byte(data), &members))
			for _, member := range slices.Sorted(maps.Keys(members)) {
				was := members[member]
				switch was.(type) {
				case string:
					members[member] = text
				case []any:
					members[member] = []string{text}
				default:
					continue
				}
				all = append(all, string(testkit.Value(json.Marshal(members))(t)))
				members[member] = was
			}
		}
	}
	return append(all, data)
}

// answered returns all texts of the answer to a call.
func (c *client) answered(typ, data string) string {
	c.t.Helper()
	a := c.ask(typ, data)
	var f struct{ Message, Reason string }
	_ = json.Unmarshal(a.Data, &f) // another answer has no text
	return f.Message + "\n" + f.Reason
}

package policy_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/policy"
)

// TestLearnedRules: learned rules are valid for any history, and correct Cedar.
func TestLearnedRules(t *testing.T) {
	t.Parallel()
	l := policy.NewLearned()
	if got := string(l.Rules("p")); strings.Contains(got, "forbid") {
		t.Errorf("of nothing: %s", got)
	}
	l.Key("Memory.Set", "/notes/1")
	l.Key("Memory.Set", "notes/2")
	l.Key("Memory.Get", `odd"*\key`)
	l.Key("Memory.Delete", "a*b/c")
	l.List("notes")
	l.Fetches[policy.Fetched{Method: "GET", Host: "a.example"}] = true
	text := l.Rules("my-own")
	set, problems := policy.Compile([]policy.File{{Name: "learned.cedar", Text: text}})
	if set == nil || len(problems) > 0 || len(set.Rules) != 5 {
		t.Fatalf("%v of\n%s", problems, text)
	}
	for _, want := range []string{
		`forbid(principal in Profile::"my-own", action == Syscall::"Memory.Set", resource)` + "\nunless {\n  " + `context.args.key like "notes/*"` + "\n};",
		`context.args.key == "odd\"*\\key"`,
		`context.args.key like "a\*b/*"`,
		`context.args has prefix && context.args.prefix like "notes*"`,
		`context.args.host == "a.example" && context.args.method == "GET"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s\nlacks %s", text, want)
		}
	}
	l.List("")
	if text := l.Rules("my-own"); strings.Contains(string(text), "Memory.List") {
		t.Errorf("after a list of all keys, a rule restricts Memory.List: %s", text)
	}
}

// TestLearnedOddly: for any calls that were learned, the rules are valid, and allow no other calls of the same syscalls.
func TestLearnedOddly(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"//x", "", "/", "a\x7fb", "a\u0085b", "\u200bx/y", "a\nb/c", `a\*b/c`, `\`, "\x00z", "\u2028/x", "\ufffd", `q"/"`, "\ue000*/x"} {
		l := policy.NewLearned()
		l.Key("Memory.Set", key)
		if key != "" && key != "/" { // which means all
			l.List(key)
		}
		text := l.Rules("p")
		if set, problems := policy.Compile([]policy.File{{Name: "learned.cedar", Text: text}}); set == nil || len(problems) > 0 || set.Rules[0].ID != "p-set" {
			t.Errorf("%q: %v\n%s", key, problems, text)
		}
	}
}

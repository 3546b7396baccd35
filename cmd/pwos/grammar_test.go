package main_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

// probes has for each word of a usage line that the grammar reads what it refuses there, with a part of the error. A verb whose usage
// line has one of these words reads it by the grammar, or this test fails.
var probes = map[string]map[string]string{
	"AGENT|operator": {"#12": "is an entry of the record, not an agent", "a:12": "is a step, not an agent"},
	"AGENT":          {"#12": "is an entry of the record, not an agent", "a:12": "is a step, not an agent", "@17": "is a time, not an agent", "-7": ""},
	"SEQ":            {"claude": "is not the number of an entry", "claude:12": "is a step, not an entry", "0": "is not the number of an entry"},
	"QUESTION":       {"claude": "is not a question", "q-0": "is not a question", "#3": "is not a question"},
	"SEQ|KEY|FILE":   {"#0": "is not the number of an entry", "file:": "names nothing"},
	"NAME|STEP":      {"#12": "is an entry of the record", "12": "steps are those of a name", "claude:0": "names no steps", "claude@beta": "of another kernel"},
	"SEQ|STEP":       {"claude": "is not the number of an entry", "0": "is not the number of an entry", "claude:0": "names no steps", "claude:3..8": "names several steps"},
	"SEQ|NAME|STEP":  {"#0": "is not the number of an entry", "claude:0": "names no steps", "a//b": "is not an agent", "claude:3..8": "undo takes one step"},
}

// plain are the other words: what is read as it is, or by the verb alone.
var plain = []string{
	"TYPE", "key=value", "SYSCALL", "DIR", "FILE", "FINGERPRINT", "WORDS", "NAME", "TOOL", "URL", "COMMAND", "ARGS", "KEY", "PREFIX", "VALUE", "HOST", "SHELL", "VERB", "PROGRAM",
	"LANGUAGE", "PATH", "PAYLOAD", "MEMBER", "ADDR", "claude", "codex", "vscode", "-",
}

// flagged are the flags of the grammar: the type that the help shows, and what it refuses.
var flagged = map[string]map[string]string{
	"agent":      {"#12": "is an entry of the record, not an agent", "a:12": "is a step, not an agent"},
	"entry":      {"claude": "is not the number of an entry", "0": "is not the number of an entry"},
	"time":       {"12": "seconds since 1970 are written @12", "claude": "is not a time"},
	"entry|time": {"claude": "is not a time", "claude:12": "is a step, not a time"},
	"step|time":  {"claude": "a step is claude:12", "12": "is not a time", "claude:0": "names no steps"},
	"duration":   {"7": "takes a duration such as", "-1s": "takes a duration such as"},
}

// byName are the names of flags that take something of the grammar wherever there is one.
var byName = map[string]string{
	"pid": "agent", "parent": "agent", "since": "entry|time", "after": "time", "before": "entry|time", "until": "entry", "from": "entry", "timeout": "duration", "for": "duration",
}

// exceptions are flags with such a name, or of a type of the flag library, and why.
var exceptions = map[string]string{
	"pwos search --since":     "time", // the kernel searches by time only
	"pwos steps --since":      "time", // entries of the record are not steps
	"pwos undo --since":       "step|time",
	"pwos audit log --before": "time", // --limit and --last count entries
}

// TestGrammar walks all verbs: each word of a usage line is one of the grammar or one that has no grammar, and each flag that takes an
// agent, an entry, a time or a duration reads it by the grammar.
func TestGrammar(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`[A-Za-z_=|-]+`)
	verbs, flags, probed := 0, 0, 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			walk(below)
		}
		path := cmd.CommandPath()
		if cmd.Runnable() {
			verbs++
			usage := strings.TrimPrefix(cmd.Use, cmd.Name())
			usage = regexp.MustCompile(`--[a-z-]+( [A-Z|]+)?`).ReplaceAllString(usage, "") // flags are walked below
			operands := slices.DeleteFunc(word.FindAllString(usage, -1), func(w string) bool { return strings.Trim(w, "|-") == "" || w == "flags" })
			for i, operand := range operands {
				if refused, ok := probes[operand]; ok {
					for text, part := range refused {
						probed++
						refuses(t, part, command(path, operands, i, text)...)
					}
					continue
				}
				for part := range strings.SplitSeq(operand, "|") {
					if !slices.Contains(plain, part) {
						t.Errorf("%s: %s is not a word of the grammar, see probes and plain; an agent is AGENT, an entry SEQ", path, part)
					}
				}
			}
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			flags++
			kind := flag.Value.Type()
			if want, known := byName[flag.Name]; known && cmp(exceptions[path+" --"+flag.Name], want) != kind {
				t.Errorf("%s --%s takes %s, want %s", path, flag.Name, kind, want)
			}
			if strings.HasPrefix(fmt.Sprintf("%T", flag.Value), "*pflag.duration") {
				t.Errorf("%s --%s is a duration of the flag library; a cli.SpanFlag takes 7d too", path, flag.Name)
			}
			for text, part := range flagged[kind] {
				probed++
				refuses(t, part, append(strings.Fields(path)[1:], "--"+flag.Name+"="+text)...)
			}
		})
	}
	walk(pwos.Tree())
	t.Logf("%d verbs, %d flags, %d refusals", verbs, flags, probed)
	if probed < 100 {
		t.Errorf("only %d refusals were tried", probed)
	}
}

func cmp(exception, want string) string {
	if exception != "" {
		return exception
	}
	return want
}

// command returns the arguments of a verb whose operand number i is text, the others being valid.
func command(path string, operands []string, i int, text string) []string {
	args := append(strings.Fields(path)[1:], "--")
	for j := range operands {
		if j == i {
			args = append(args, text)
		} else {
			args = append(args, "1")
		}
	}
	return args
}

func refuses(t *testing.T, part string, args ...string) {
	t.Helper()
	if got := pwos.Misused(t.Context(), args...); got == "" || !strings.Contains(got, part) {
		t.Errorf("%q: %q, want a usage error with %q", args, got, part)
	}
}

// TestDidYouMean: a verb or a flag that does not exist names the nearest; hidden ones are not named.
func TestDidYouMean(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"logz"}, `unknown command "logz"; did you mean "logs"?`},
		{[]string{"audit", "lof"}, `unknown command "lof"; did you mean "log"?`},
		{[]string{"zzzzzz"}, `unknown command "zzzzzz"`},
		{[]string{"ps", "--wiide"}, "unknown flag --wiide; did you mean --wide?"},
		{[]string{"ps", "--jsn"}, "unknown flag --jsn; did you mean --json?"},
		{[]string{"ps", "--qqqqqq"}, "unknown flag --qqqqqq"},
		{[]string{"syscall", "--sate-dir=x", "ping"}, "unknown flag --sate-dir; did you mean --state-dir?"},
		{[]string{"hook", "install", "cluade"}, `"cluade" is not one of claude, codex; did you mean "claude"?`},
		{[]string{"mcp", "install", "vscod"}, `"vscod" is not one of claude, codex, vscode; did you mean "vscode"?`},
	} {
		if got := pwos.Misused(t.Context(), tt.args...); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.args, got, tt.want)
		}
	}
}

package main_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/profile"
)

// TestRunFlags checks that the help of run fits a screen and shows what people type, and that each older flag is still taken.
func TestRunFlags(t *testing.T) {
	t.Parallel()
	flags, help := pwos.RunFlags()
	var shown []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			shown = append(shown, f.Name)
		}
	})
	own := slices.DeleteFunc(shown, func(name string) bool {
		return slices.Contains([]string{"help", "identity", "json", "kernel", "no-spawn", "origin", "runtime-dir", "timeout"}, name)
	})
	if got, want := strings.Join(own, " "), "allow budget channel env explain hide home host name profile publish read review set write"; got != want {
		t.Errorf("the help shows %s, want %s", got, want)
	}
	_, options, _ := strings.Cut(help, "\nFlags:\n")
	if n := strings.Count(options, "\n"); n > 25 || n < len(own) {
		t.Errorf("the options take %d lines:\n%s", n, options)
	}
	if !strings.Contains(options, "pwos help settings") {
		t.Error("the help does not say where the other settings are")
	}
	for _, name := range strings.Fields(`allow allow-gaps budget cache channel detach dir env hide home host http-open http-plain learn limit name net own-dir
		preset profile quota read restart sandbox snapshot snapshot-limit snapshot-skip ttl tty write`) {
		if flags.Lookup(name) == nil {
			t.Errorf("--%s is not taken any more", name)
		}
	}
	if flags.ShorthandLookup("d") == nil {
		t.Error("-d is not taken any more")
	}
}

// TestPresets checks that each preset can be named.
func TestPresets(t *testing.T) {
	t.Parallel()
	for _, name := range append(pwos.Presets(), "none") {
		if err := new(profile.Line).Set("program.preset=" + name); err != nil {
			t.Error(err)
		}
	}
}

// TestSetting checks that the error about a setting names it and what it takes, and is one of usage.
func TestSetting(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"run --set sandbox.nett=none -- true":     "--set: there is no setting sandbox.nett; did you mean sandbox.net?",
		"run --set sandbox.net=wide -- true":      `--set sandbox.net takes none, kernel or open, not "wide"`,
		"run --set sandbox.net -- true":           `--set takes KEY=VALUE, not "sandbox.net"`,
		"run --net wide -- true":                  `--net takes none, kernel or open, not "wide"`,
		"run --http-plain=maybe -- true":          `--http-plain takes true or false, not "maybe"`,
		"spawn x --allow a --quota gpu":           `--quota takes resource=amount, not "gpu"`,
		"cap grant 1 Memory.Get --ttl 1ms":        `--ttl takes a duration such as 5m, of at least 1s, not "1ms"`,
		"mcp add x --limit processes=0 -- true":   `--limit processes takes a whole number from 1 to 2147483647, not "0"`,
		"run --dir . --own-dir -- true":           "--dir and --own-dir exclude each other",
		"run --learn --quota gpu=1 -- true":       "--learn grants everything: leave out --quota",
		"run --env NO_SUCH_VARIABLE_HERE -- true": "the variable NO_SUCH_VARIABLE_HERE is not set here",
		"run --home no/such -- true":              "find home directory",
	} {
		if got := pwos.Misused(t.Context(), strings.Fields(line)...); !strings.Contains(got, want) {
			t.Errorf("pwos %s: %q, want %q", line, got, want)
		}
	}
}

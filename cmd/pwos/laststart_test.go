package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

// TestLastFailure checks that only the end of the latest daemon in the log counts.
func TestLastFailure(t *testing.T) {
	t.Parallel()
	const (
		opened = `{"level":"info","message":"state rebuilt from the journal","entries":0}`
		ready  = `{"level":"info","message":"ready","pid":1}`
		ended  = `{"level":"info","message":"ended"}`
		failed = `{"level":"error","message":"ended","error":"open \u001b journal: it is torn"}`
		other  = `{"level":"error","message":"ended","error":"something else"}`
	)
	many := slices.Repeat([]string{opened}, 9)
	for name, tt := range map[string]struct {
		lines []string
		want  string
	}{
		"no log":                {nil, ""},
		"runs, or was killed":   {[]string{failed, opened, ready}, ""},
		"ended cleanly":         {[]string{other, ready, ended}, ""},
		"its only start":        {[]string{opened, failed}, `the last start failed: open \u001b journal: it is torn`},
		"the last of many":      {[]string{ready, ended, other, failed}, `the last start failed: open \u001b journal: it is torn`},
		"it did run":            {[]string{opened, ready, other}, "the last one ended with an error: something else"},
		"too long ago to tell":  {append(many, other), "the last one ended with an error: something else"},
		"no log of its own yet": {[]string{ended, "pwosd: unknown key \"logg\""}, `the last start failed: unknown key "logg"`},
		"more lines than one":   {[]string{ended, "pwosd: one thing", "and another"}, "the last start failed: one thing"},
		"nothing readable":      {[]string{"[]", "{", "null", `{"message":7}`}, ""},
	} {
		if got := pwos.LastFailure(tt.lines); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestStatusSaysThatCommandsAreRefused checks that the status has the member refusing only if the kernel refuses commands.
func TestStatusSaysThatCommandsAreRefused(t *testing.T) {
	t.Parallel()
	for refusing, want := range map[string]bool{"no space left on device": true, "": false} {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err == nil {
			err = pwos.PrintedStatus(out, refusing)
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out.Name())
		if got := strings.Contains(string(text), `"refusing":"no space left on device"`); err != nil || got != want {
			t.Errorf("refusing for %q: %s, %v", refusing, text, err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

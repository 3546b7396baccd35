package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

// TestSubjects checks that each verb is in exactly one group, and that no group is empty.
func TestSubjects(t *testing.T) {
	t.Parallel()
	verbs, outside, subjects := pwos.Subjects()
	if len(outside) > 0 {
		t.Errorf("these verbs are in no group: %q", outside)
	}
	if slices.Sort(verbs); len(slices.Compact(slices.Clone(verbs))) != len(verbs) {
		t.Errorf("a verb is listed twice: %q", verbs)
	}
	for title, n := range subjects {
		if n == 0 || title == "" {
			t.Errorf("%q has %d verbs", title, n)
		}
	}
	if len(verbs) < 45 || len(subjects) < 5 {
		t.Errorf("%d verbs in %d groups", len(verbs), len(subjects))
	}
}

// TestFiles: each verb of the root has a file of its own.
func TestFiles(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) < 50 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	declared, made := make(map[string]string), make(map[string]bool)
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil {
				continue
			}
			declared[f.Name.Name] = name
			if f.Name.Name == "subjects" {
				ast.Inspect(f, func(n ast.Node) bool {
					if of, ok := n.(*ast.Ident); ok && strings.HasPrefix(of.Name, "new") {
						made[of.Name] = true
					}
					return true
				})
			}
		}
	}
	if len(made) < 40 {
		t.Errorf("only %d verbs were found in root.go", len(made))
	}
	first := make(map[string]string)
	for _, verb := range slices.Sorted(maps.Keys(made)) {
		if other := first[declared[verb]]; other != "" {
			t.Errorf("%s declares %s and %s: a verb has a file of its own", declared[verb], other, verb)
		}
		first[declared[verb]] = verb
	}
}

func TestCutMode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, mode, rest string }{
		{"", "", ""},
		{"status --json", "", "status --json"},
		{"--mode=daemon", "daemon", ""},
		{"--mode daemon --log-level debug", "daemon", "--log-level debug"},
		{"--config x --mode=daemon --log-level debug", "daemon", "--config x --log-level debug"},
		{"--mode=client status", "client", "status"},
		{"status --mode", "", "status --mode"},
		{"call A.B -- --mode=daemon", "", "call A.B -- --mode=daemon"},
		{"call A.B x=--mode=daemon", "", "call A.B x=--mode=daemon"},
		{"run prog --mode=daemon", "", "run prog --mode=daemon"},
		{"run prog --mode daemon", "", "run prog --mode daemon"},
		{"--json run prog --mode=daemon", "", "--json run prog --mode=daemon"},
		{"--runtime-dir r run prog --mode=daemon", "", "--runtime-dir r run prog --mode=daemon"},
		{"--runtime-dir=r --json --mode=daemon", "daemon", "--runtime-dir=r --json"},
		{"--no-spawn --timeout 5s --mode=echo", "echo", "--no-spawn --timeout 5s"},
		{"-- --mode=daemon", "", "-- --mode=daemon"},
	} {
		mode, rest := pwos.CutMode(strings.Fields(tt.args))
		if mode != tt.mode || strings.Join(rest, " ") != tt.rest {
			t.Errorf("%q: mode %q, rest %q, want %q, %q", tt.args, mode, rest, tt.mode, tt.rest)
		}
	}
}

// TestLine: a command line has its verb alone, which is that of the whole tree; a line that needs the others has all.
func TestLine(t *testing.T) {
	t.Parallel()
	whole := pwos.Tree()
	for _, verb := range whole.Commands() {
		root := pwos.Line(verb.Name(), "--help")
		if verb.Name() == "completion" {
			if has := len(root.Commands()); has != len(whole.Commands()) {
				t.Errorf("%s has %d verbs, want all %d", verb.Name(), has, len(whole.Commands()))
			}
			continue
		}
		only := root.Commands()
		if len(only) != 1 || only[0].Name() != verb.Name() || only[0].UsageString() != verb.UsageString() || only[0].Long != verb.Long {
			t.Errorf("a line with %s has %d verbs, want its own alone", verb.Name(), len(only))
		}
	}
	for _, line := range [][]string{nil, {"help", "run"}, {"--json", "run"}, {"__complete", "run", ""}, {"rum"}} {
		if has := len(pwos.Line(line...).Commands()); has != len(whole.Commands()) {
			t.Errorf("%q has %d verbs, want all %d", line, has, len(whole.Commands()))
		}
	}
}

package imports_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/test/imports"
)

const module = "example.org/m"

// load writes a module of the given files, without go.mod, and parses it.
func load(t *testing.T, files map[string]string) *imports.Tree {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"go.mod": "module " + module + "\n\ngo 1.26\n"})
	write(t, dir, files)
	tree, err := imports.Load(dir)
	testkit.Must(t, err)
	return tree
}

// house returns the rules of the module.
func house(t *testing.T) *imports.Rules {
	t.Helper()
	rules, err := imports.House()
	testkit.Must(t, err)
	return rules
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		testkit.Must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		testkit.Must(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

// source returns a valid file of the package in dir with the given imports.
func source(dir string, paths ...string) string {
	name := dir[strings.LastIndexByte(dir, '/')+1:]
	var b strings.Builder
	b.WriteString("// Package " + name + " is made for a test.\npackage " + name + "\n")
	for _, p := range paths {
		b.WriteString("\nimport _ \"" + p + "\"")
	}
	return b.String()
}

// testSource returns an external test file of the package in dir with the given imports.
func testSource(dir string, paths ...string) string {
	_, body, _ := strings.Cut(source(dir, paths...), "\n")
	clause, rest, _ := strings.Cut(body, "\n")
	return clause + "_test\n" + rest
}

// only fails the test unless the tree has exactly one violation, in the file, whose text has all of says.
func only(t *testing.T, tree *imports.Tree, file string, says ...string) {
	t.Helper()
	found := house(t).Check(tree)
	if len(found) != 1 {
		t.Fatalf("%d violations, want one: %v", len(found), found)
	}
	v := found[0]
	if v.File != file {
		t.Errorf("found in %s, want %s", v.File, file)
	}
	if v.Found == "" || v.Rule == "" || v.Reason == "" {
		t.Errorf("%#v has an empty field", v)
	}
	for _, s := range append(says, file, v.Rule, v.Reason) {
		if !strings.Contains(v.String(), s) {
			t.Errorf("%q does not say %q", v, s)
		}
	}
}

// none fails the test if the tree breaks a rule.
func none(t *testing.T, tree *imports.Tree) {
	t.Helper()
	for _, v := range house(t).Check(tree) {
		t.Error(v)
	}
}

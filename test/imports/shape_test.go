package imports_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestPurity(t *testing.T) {
	t.Parallel()
	body := func(name, clause, statement string) string {
		return source(name) + "import " + clause + "\"time\"\n\nfunc f() { " + statement + " }\n\nvar _ time.Duration\n"
	}
	for _, c := range []struct{ clause, statement, says string }{
		{"", "time.Now()", "time.Now"},
		{"", "_ = time.After", "time.After"},
		{"clock ", "clock.Sleep(0)", "time.Sleep"},
		{". ", "Now()", "imports time"},
		{"", "go f()", "goroutine"},
		{"", "func() { if true { go f() } }()", "goroutine"},
	} {
		t.Run(c.clause+c.statement, func(t *testing.T) {
			t.Parallel()
			only(t, load(t, map[string]string{"kernel/a.go": body("kernel", c.clause, c.statement)}), "kernel/a.go", c.says)
			only(t, load(t, map[string]string{"kernel/ipc/a.go": body("ipc", c.clause, c.statement)}), "kernel/ipc/a.go", c.says)
			none(t, load(t, map[string]string{"actors/a.go": body("actors", c.clause, c.statement)}))
			none(t, load(t, map[string]string{
				"kernel/doc.go":    source("kernel"),
				"kernel/a_test.go": testSource("kernel") + strings.TrimPrefix(body("kernel", c.clause, c.statement), source("kernel")),
			}))
		})
	}
	none(t, load(t, map[string]string{"kernel/a.go": body("kernel", "", "_ = time.Unix(0, 0)")}))
}

func TestInit(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"index/a.go", "index/a_test.go"} {
		files := map[string]string{"index/doc.go": source("index"), file: "package index\n\nfunc init() {}\n"}
		only(t, load(t, files), file, ":3:", "init")
	}
	none(t, load(t, map[string]string{"index/a.go": source("index") + "\ntype t struct{}\n\nfunc (t) init() {}\n"}))
}

func TestPackageComment(t *testing.T) {
	t.Parallel()
	const clause = "\npackage index\n"
	for _, c := range []struct{ name, doc, second, file, says string }{
		{"one", "// Package index keeps rows.", "package index", "", ""},
		{"two sentences", "// Package index keeps rows. It is fast and small.", "package index", "", ""},
		{"none", "", "package index", "index", "no package comment"},
		{"apart", "// Package index keeps rows.\n", "package index", "index", "no package comment"},
		{"directive", "//go:build linux\n", "package index", "index", "no package comment"},
		{"twice", "// Package index keeps rows.", "// Package index does.\npackage index", "index/b.go", "index/a.go, index/b.go"},
		{"other", "// Package shop sells.", "package index", "index/a.go", "names another"},
		{"two reasons", "// Package index keeps rows and sells them.", "package index", "index/a.go", `"and"`},
		{"in a test", "", "// Package index keeps rows.\npackage index", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tree := load(t, map[string]string{"index/a.go": c.doc + clause, "index/b.go": c.second + "\n"})
			if c.says == "" {
				none(t, tree)
			} else {
				only(t, tree, c.file, c.says)
			}
		})
	}
	none(t, load(t, map[string]string{"cmd/pwosd/main.go": "// Pwosd is the kernel.\npackage main\n"}))
	only(t, load(t, map[string]string{"cmd/pwosd/main.go": "package main\n"}), "cmd/pwosd", "no package comment")
	for _, name := range []string{"e2e", "e2e_test"} {
		none(t, load(t, map[string]string{"test/e2e/a_test.go": "// Package " + name + " starts the binaries.\npackage e2e_test\n"}))
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, first, second, says string }{
		{"functions", "func Open() {}", "func open() {}", "Open and open"},
		{"a type beside a function", "type Mirror struct{}", "func mirror() {}", "Mirror and mirror"},
		{"a constant beside a variable", "const timeOut = 1", "var timeout = 1", "timeOut and timeout"},
		{"methods", "type t struct{}\n\nfunc (t) Do() {}", "func (x *t) do() {}", "Do and do"},
		{"methods of a generic type", "type t[A any] struct{}\n\nfunc (t[A]) Do() {}", "func (x *t[A]) do() {}", "Do and do"},
		{"methods of two types", "type t struct{}\n\nfunc (t) Do() {}", "type u struct{}\n\nfunc (u) do() {}", ""},
		{"a method beside a function", "type t struct{}\n\nfunc (t) Do() {}", "func do() {}", ""},
		{"blank", "var _ = 1", "var _ = 2", ""},
		{"two platforms", "func open() {}", "func open() {}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tree := load(t, map[string]string{
				"index/a.go": source("index") + "\n" + c.first + "\n",
				"index/b.go": "package index\n\n" + c.second + "\n",
			})
			if c.says == "" {
				none(t, tree)
			} else {
				only(t, tree, "index/b.go", c.says)
			}
		})
	}
	none(t, load(t, map[string]string{
		"index/a.go":      source("index") + "\nfunc Open() {}\n",
		"index/b_test.go": "package index\n\nfunc open() {}\n",
	}))
}

func TestFileLength(t *testing.T) {
	t.Parallel()
	// tree returns a package of ten short files and others of the given lengths.
	tree := func(header string, lengths ...int) map[string]string {
		files := map[string]string{}
		for i := range 10 {
			files[fmt.Sprintf("host/short%d.go", i)] = "package host\n"
		}
		files["host/short0.go"] = source("host")
		for i, n := range lengths {
			files[fmt.Sprintf("host/x%d.go", i)] = header + "package host\n" + strings.Repeat("\n", n-1-strings.Count(header, "\n"))
		}
		return files
	}
	none(t, load(t, tree("", 500)))
	none(t, load(t, tree("", 299, 299)))
	only(t, load(t, tree("", 501)), "host/x0.go", "501 lines")
	only(t, load(t, tree("", 300, 300)), ".", "2 of 12 files", "host/x0.go, host/x1.go")
	for _, c := range []struct {
		file  string
		lines int
		says  string
	}{
		{"cmd/pwos/x.go", 300, ""}, {"cmd/pwos/x.go", 301, "301 lines"}, {"cmd/pwos/internal/cli/x_test.go", 301, "301 lines"}, {"cmd/pwosd/x.go", 301, ""},
	} {
		files := tree("")
		name, _, _ := strings.Cut(strings.TrimPrefix(c.file[strings.LastIndex(c.file, "/")+1:], "x"), ".")
		dir := c.file[:strings.LastIndex(c.file, "/")]
		pkg := map[string]string{"cmd/pwos": "main", "cmd/pwosd": "main", "cmd/pwos/internal/cli": "cli"}[dir]
		doc := "// Package " + pkg + " is one.\npackage " + pkg + "\n"
		if pkg == "main" {
			doc = "// Command x is one.\npackage main\n"
		}
		files[dir+"/doc.go"] = doc
		if name == "_test" {
			pkg += "_test"
		}
		files[c.file] = "package " + pkg + "\n" + strings.Repeat("\n", c.lines-1)
		if c.says == "" {
			none(t, load(t, files))
		} else {
			only(t, load(t, files), c.file, c.says, "no file of cmd/pwos/ has more than 300")
		}
	}
	none(t, load(t, tree("// Code generated from a table. DO NOT EDIT.\n\n", 900, 900)))
}

package imports

import (
	"fmt"
	"strconv"
	"strings"
)

// imports checks all imports of a file.
func (t *Tables) imports(tree *Tree, f *File) []Violation {
	var found []Violation
	row, named := t.row(f.Dir)
	for _, spec := range f.syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser takes no import path that does not unquote
		}
		var rule, reason string
		own, ours := t.ours(tree, path)
		switch {
		case ours && t.forTests(own) && !t.forTests(f.Dir) && !f.Test:
			rule, reason = "only tests import "+own, "what tests need has no place in a program"
		case ours && named:
			rule, reason = row.check(f, own)
		case ours:
			// The missing row is reported once, for the package.
		case standard(path):
			rule, reason = t.standard(f, path)
		default:
			rule, reason = t.library(f, path)
		}
		if rule != "" {
			found = append(found, Violation{
				File: f.Path, Line: tree.line(spec.Pos()),
				Found: "imports " + path, Rule: rule, Reason: reason,
			})
		}
	}
	return found
}

// row returns the first row that fits the package at dir.
func (t *Tables) row(dir string) (Package, bool) {
	for _, r := range t.Packages {
		if fits(r.Path, dir) {
			return r, true
		}
	}
	return Package{}, false
}

// forTests reports whether the package at dir exists for tests.
func (t *Tables) forTests(dir string) bool {
	row, _ := t.row(dir)
	return row.ForTests
}

// ours returns the path below the module's root of an import of our own.
func (t *Tables) ours(tree *Tree, path string) (string, bool) {
	if path == tree.Module {
		return ".", true
	}
	return strings.CutPrefix(path, tree.Module+"/")
}

// check returns the rule that an import of our package own breaks, if it does.
func (r Package) check(f *File, own string) (rule, reason string) {
	if own == f.Dir || fitsAny(r.May, own) {
		return "", ""
	}
	may := r.May
	if f.Test {
		if fitsAny(r.Tests, own) || below("internal", own) || below("test", own) {
			return "", ""
		}
		may = append(append([]string{}, may...), r.Tests...)
	}
	list := strings.Join(may, ", ")
	if list == "" {
		list = "nothing"
	}
	return fmt.Sprintf("%s may import of ours: %s", r.Path, list), r.Reason
}

// unnamed finds packages that no row fits.
func (t *Tables) unnamed(tree *Tree) []Violation {
	var found []Violation
	for _, p := range tree.packages() {
		if _, named := t.row(p.dir); named {
			continue
		}
		found = append(found, Violation{
			File:   p.dir,
			Found:  fmt.Sprintf("package %s is in no row of the table", p.dir),
			Rule:   "add a row for it to packages() in test/imports/packages.go",
			Reason: "a package without a rule could import anything",
		})
	}
	return found
}

package imports

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Limits of a file's length, in lines.
const (
	longest = 500 // no file is longer
	long    = 300 // nine of ten files are shorter, and no file of the verbs is longer
)

// verbs is the folder of the command line, where a file is about one verb.
const verbs = "cmd/pwos/"

// Violation is one violation of one rule.
type Violation struct {
	// File is the path of a file or directory from the module's root; Line is 0 if all of it is meant.
	File string
	Line int
	// Found is what was found, Rule what is required, and Reason why.
	Found, Rule, Reason string
}

// String returns the violation in one line.
func (v Violation) String() string {
	place := v.File
	if v.Line > 0 {
		place = fmt.Sprintf("%s:%d", v.File, v.Line)
	}
	return fmt.Sprintf("%s: %s; rule: %s; reason: %s", place, v.Found, v.Rule, v.Reason)
}

// check is the state of one Check.
type check struct {
	*Rules
	*Tree
	found []Violation
}

// Check returns the violations of the rules in a tree, in the order of the paths.
func (r *Rules) Check(tree *Tree) []Violation {
	c := &check{Rules: r, Tree: tree}
	folders := make(map[string][]*File)
	for _, f := range tree.Files {
		folders[f.Dir] = append(folders[f.Dir], f)
		c.imports(f)
		c.code(f)
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		if c.rule(dir) == nil {
			c.report(dir, nil, "package "+dir+" is in no rule", "add a rule for it to test/imports/rules.txt",
				"a package without a rule could import anything")
		}
		c.comment(dir, folders[dir])
		c.names(folders[dir])
	}
	c.lengths()
	slices.SortStableFunc(c.found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return c.found
}

// report adds a violation, of a whole file or directory if node is nil.
func (c *check) report(file string, at ast.Node, found, rule, reason string) {
	v := Violation{File: file, Found: found, Rule: rule, Reason: reason}
	if at != nil {
		v.Line = c.fset.Position(at.Pos()).Line
	}
	c.found = append(c.found, v)
}

// rule returns the rule of the package at dir, or nil.
func (c *check) rule(dir string) *Rule {
	for i := range c.Packages {
		if fits(c.Packages[i].Path, dir) {
			return &c.Packages[i]
		}
	}
	return nil
}

// imports checks all imports of a file.
func (c *check) imports(f *File) {
	for _, spec := range f.syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser accepts only import paths that can be unquoted
		}
		judge := c.outside
		own, ours := strings.CutPrefix(path, c.Module+"/")
		if path == c.Module {
			own, ours = ".", true
		}
		if ours {
			path, judge = own, c.inside
		}
		if rule, reason := judge(f, path); rule != "" {
			c.report(f.Path, spec, "imports "+spec.Path.Value, rule, reason)
		}
	}
}

// inside returns the rule that an import of this module's package own breaks, if it does.
func (c *check) inside(f *File, own string) (rule, reason string) {
	of, to := c.rule(f.Dir), c.rule(own)
	switch {
	case to != nil && to.ForTests && !f.Test && (of == nil || !of.ForTests):
		return "only tests import " + own, "what tests need has no place in a program"
	case of == nil: // reported once, for the package
	case own == f.Dir, fitsAny(of.May, own):
	case f.Test && (fitsAny(of.Tests, own) || below("internal", own) || below("test", own)):
	default:
		may := slices.Clone(of.May)
		if f.Test {
			may = append(may, of.Tests...)
		}
		return fmt.Sprintf("%s may import of ours: %s", of.Path, cmp.Or(strings.Join(may, ", "), "nothing")), of.Reason
	}
	return "", ""
}

// outside returns the rule that an import of a library, or of the standard library, breaks, if it does.
func (c *check) outside(f *File, path string) (rule, reason string) {
	var of Rule
	for _, r := range c.Imports {
		if below(r.Path, path) && len(r.Path) > len(of.Path) {
			of = r
		}
	}
	first, _, _ := strings.Cut(path, "/")
	switch {
	case of.Path == "" && strings.Contains(first, "."): // paths of the standard library have no dot
		return "add a rule for the library to test/imports/rules.txt", "a dependency that nobody owns spreads"
	case of.Path == "", fitsAny(of.May, f.Dir), f.Test && fitsAny(of.Tests, f.Dir):
		return "", ""
	}
	return fmt.Sprintf("%s is imported only by %s", of.Path, cmp.Or(strings.Join(of.May, ", "), "nobody")), of.Reason
}

// code finds init functions, and goroutines and readings of the clock in packages that are replayed.
func (c *check) code(f *File) {
	for _, decl := range f.syntax.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			c.report(f.Path, fn, "declares func init", "no package has one",
				"what runs because of an import cannot be seen, ordered or tested")
		}
	}
	if of := c.rule(f.Dir); f.Test || of == nil || !of.Pure {
		return
	}
	clock := ""
	for _, spec := range f.syntax.Imports {
		if spec.Path.Value == `"time"` {
			clock = "time"
			if spec.Name != nil {
				clock = spec.Name.Name
			}
		}
	}
	if clock == "." {
		c.report(f.Path, f.syntax.Name, "imports time under no name", "a pure package reads no clock",
			"its calls could not be told apart")
	}
	readings := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			c.report(f.Path, n, "starts a goroutine", "a pure package starts none",
				"two runs over one journal must take the same steps")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == clock && slices.Contains(readings, n.Sel.Name) {
				c.report(f.Path, n, "calls time."+n.Sel.Name, "a pure package reads no clock",
					"time comes in with the call, or replay would see another one")
			}
		}
		return true
	})
}

// comment checks that a package has exactly one package comment, with one purpose.
func (c *check) comment(dir string, files []*File) {
	file, text := dir, ""
	var where []string
	for _, f := range files {
		if f.syntax.Doc.Text() != "" {
			file, text = f.Path, f.syntax.Doc.Text()
			where = append(where, f.Path)
		}
	}
	name := strings.TrimSuffix(files[0].syntax.Name.Name, "_test")
	names := func(name string) bool { return strings.HasPrefix(text, "Package "+name+" ") }
	var found, rule string
	switch {
	case len(where) == 0:
		found, rule = "no package comment", "each package has one"
	case len(where) > 1:
		found, rule = "package comments in "+strings.Join(where, ", "), "each package has one, in one file"
	case name != "main" && !names(name) && !names(name+"_test"):
		found, rule = "a package comment that names another package", `it begins with "Package" and the name`
	case slices.Contains(strings.Fields(new(doc.Package).Synopsis(text)), "and"):
		found, rule = `"and" in the package comment's first sentence`, "it gives the package's one reason to exist"
	default:
		return
	}
	c.report(file, nil, found, rule, "a package that cannot say what it is for is two, or none")
}

// lengths checks the lengths of files.
func (c *check) lengths() {
	const reason = "a file has one subject, and a reader holds it in mind"
	var tall []string
	files := 0
	for _, f := range c.Files {
		if f.Generated {
			continue
		}
		files++
		if f.Lines >= long {
			tall = append(tall, f.Path)
		}
		most, of := longest, ""
		if strings.HasPrefix(f.Dir+"/", verbs) {
			most, of = long, " of "+verbs
		}
		if f.Lines > most {
			c.report(f.Path, nil, fmt.Sprintf("%d lines", f.Lines), fmt.Sprintf("no file%s has more than %d", of, most), reason)
		}
	}
	if len(tall)*10 > files {
		c.report(".", nil, fmt.Sprintf("%d of %d files have %d lines or more: %s", len(tall), files, long, strings.Join(tall, ", ")),
			"nine of ten files are shorter", reason)
	}
}

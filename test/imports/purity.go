package imports

import (
	"go/ast"
	"slices"
)

// purity finds goroutines and readings of the clock in packages that are replayed.
func (t *Tables) purity(tree *Tree, f *File) []Violation {
	if f.Test || !fitsAny(t.Pure, f.Dir) {
		return nil
	}
	var found []Violation
	report := func(n ast.Node, what, rule, reason string) {
		found = append(found, Violation{File: f.Path, Line: tree.line(n.Pos()), Found: what, Rule: rule, Reason: reason})
	}
	clock := localName(f, "time")
	if clock == "." {
		report(f.syntax.Name, "imports time under no name", "a pure package reads no clock", "its calls could not be told apart")
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n, "starts a goroutine", "a pure package starts none", "two runs over one journal must take the same steps")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == clock && readsClock(n.Sel.Name) {
				report(n, "calls time."+n.Sel.Name, "a pure package reads no clock",
					"time comes in with the call, or replay would see another one")
			}
		}
		return true
	})
	return found
}

// localName returns the name that a file knows an import by, "" where it has no such import.
func localName(f *File, path string) string {
	for _, spec := range f.syntax.Imports {
		if spec.Path.Value != `"`+path+`"` {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path
	}
	return ""
}

func readsClock(name string) bool {
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}
	return slices.Contains(clock, name)
}

// initializers finds init functions, in any package.
func initializers(tree *Tree, f *File) []Violation {
	var found []Violation
	for _, decl := range f.syntax.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if ok && fn.Recv == nil && fn.Name.Name == "init" {
			found = append(found, Violation{
				File: f.Path, Line: tree.line(fn.Pos()),
				Found: "declares func init", Rule: "no package has one",
				Reason: "what runs because of an import cannot be seen, ordered or tested",
			})
		}
	}
	return found
}

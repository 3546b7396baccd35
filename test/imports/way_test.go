package imports_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/test/imports"
)

// onTheWay are the packages whose types a call is, or is handled by, between its connection and the journal.
var onTheWay = map[string]bool{"kernel": true}

// mostFields bounds the fields of a type on the way of a call.
const mostFields = 12

// TestWayOfACall: only its constructor makes a call, so that none is without a moment, and no type on the way of a call has
// more fields than one remembers.
func TestWayOfACall(t *testing.T) {
	t.Parallel()
	tree, err := imports.Load(filepath.Join("..", ".."))
	testkit.Must(t, err)
	for _, f := range tree.Files {
		if f.Test {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join("..", "..", f.Path), nil, 0)
		testkit.Must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if call, ok := n.Type.(*ast.SelectorExpr); ok && call.Sel.Name == "Call" {
					if pkg, ok := call.X.(*ast.Ident); ok && pkg.Name == "kernel" {
						t.Errorf("%s:%d: a call without a moment; kernel.NewCall makes one", f.Path, files.Position(n.Pos()).Line)
					}
				}
			case *ast.TypeSpec:
				s, ok := n.Type.(*ast.StructType)
				if !ok || !onTheWay[f.Dir] {
					return true
				}
				fields := 0
				for _, field := range s.Fields.List {
					fields += max(1, len(field.Names))
				}
				if fields > mostFields {
					t.Errorf("%s:%d: %s has %d fields, %d is the most on the way of a call", f.Path, files.Position(n.Pos()).Line, n.Name.Name, fields, mostFields)
				}
			}
			return true
		})
	}
}

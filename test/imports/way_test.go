package imports_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/test/imports"
)

// onTheWay are the packages whose types a call is, or is handled by, between its connection and the journal.
var onTheWay = map[string]bool{"kernel": true, "actors": true}

// ofOneRow are the data types of one syscall.
var ofOneRow = regexp.MustCompile(`[a-z](Input|Output)$`)

// mostFields bounds the fields of a type on the way of a call.
const mostFields = 12

// TestWayOfACall: only its constructor makes a call, so that none is without a moment, and no type on the way of a call has
// more fields than one remembers.
func TestWayOfACall(t *testing.T) {
	t.Parallel()
	tree, err := imports.Load(filepath.Join("..", ".."))
	testkit.Must(t, err)
	rows := make(map[string]bool)
	for _, row := range schema.Syscalls() {
		rows[strings.ToLower(strings.ReplaceAll(row.Type, ".", ""))] = true
	}
	for _, f := range tree.Files {
		if f.Test {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join("..", "..", f.Path), nil, 0)
		testkit.Must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && f.Dir == "actors" && f.Path != "actors/rows.go" && pkg.Name == "schema" && (ofOneRow.MatchString(n.Sel.Name) || rows[strings.ToLower(n.Sel.Name)]) {
					t.Errorf("%s:%d: %s.%s is of one syscall; actors knows those in rows.go alone", f.Path, files.Position(n.Pos()).Line, pkg.Name, n.Sel.Name)
				}
			case *ast.CompositeLit:
				if call, ok := n.Type.(*ast.SelectorExpr); ok && call.Sel.Name == "Call" {
					if pkg, ok := call.X.(*ast.Ident); ok && pkg.Name == "kernel" {
						t.Errorf("%s:%d: a call without a moment; kernel.NewCall makes one", f.Path, files.Position(n.Pos()).Line)
					}
				}
			case *ast.TypeSpec:
				s, ok := n.Type.(*ast.StructType)
				if !ok || !onTheWay[f.Dir] || n.Name.Name == "Config" { // what a kernel is made of is no part of the way
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

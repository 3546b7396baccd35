package imports_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/test/imports"
)

// inserted is text of the tree that prints a command of pwos with a text inserted: by a verb of fmt, or at its end.
var inserted = regexp.MustCompile(`pwos (cap|audit|policy|approve|refuse|kill|logs|ps|run|mcp|auth|cluster|diff|undo|restore|budget|mem|call|hook|login|home|steps|why|graph|send|recv|pause|resume|spawn|search|story|replay|describe|export|backup|seal|unseal|syscall|top)( -{0,2}[a-z-]+)*[^"'.;:,()]*%(\[\d\])?[sqv]`)

var unfinished = regexp.MustCompile(`(^|["' ])pwos (cap|audit|policy|approve|refuse|kill|logs|ps|run|mcp|auth|cluster|diff|undo|restore|budget|mem|call|hook|login|home|steps|why|graph|send|recv|pause|resume|spawn|search|story|replay|describe|export|backup|seal|unseal|syscall|top)( -{0,2}[a-z-]+)* $`)

// TestPrintedCommands: what is inserted into a printed command is quoted for a shell, by package quote.
func TestPrintedCommands(t *testing.T) {
	t.Parallel()
	found := 0
	tree, err := imports.Load(filepath.Join("..", ".."))
	testkit.Must(t, err)
	for _, f := range tree.Files {
		if f.Test || strings.HasPrefix(f.Path, "internal/testkit/") {
			continue
		}
		for _, at := range printed(t, filepath.Join("..", "..", f.Path), nil) {
			found++
			t.Errorf("%s:%d: a printed command with a text that is not quoted; quote.Command makes one", f.Path, at)
		}
	}
	for _, line := range []string{
		"fmt.Sprintf(`allow it with \"pwos cap grant %d --add %s\"`, 1, name)", "fmt.Sprint(`\"pwos mcp login ` + name + `\"`)", `"run pwos cluster takeover " + name`,
		"fmt.Errorf(\"pwos approve %[1]s\", id)",
	} {
		if len(printed(t, "", "package a\n\nvar a = "+line)) != 1 {
			t.Errorf("%s is not found", line)
		}
	}
}

// printed returns the lines of a file that print such a command.
func printed(t *testing.T, name string, source any) (lines []int) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, 0)
	testkit.Must(t, err)
	text := func(e ast.Expr) (*ast.BasicLit, string) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return nil, ""
		}
		return lit, testkit.Value(strconv.Unquote(lit.Value))(t)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if _, s := text(n); inserted.MatchString(s) {
				lines = append(lines, files.Position(n.Pos()).Line)
			}
		case *ast.BinaryExpr:
			left := n.X
			if sum, ok := left.(*ast.BinaryExpr); ok {
				left = sum.Y
			}
			if lit, s := text(left); n.Op == token.ADD && lit != nil && unfinished.MatchString(s) {
				lines = append(lines, files.Position(lit.Pos()).Line)
			}
		}
		return true
	})
	return lines
}

package imports

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
)

// ErrNoModule says that a directory has no go.mod with a module line.
var ErrNoModule = errors.New("no module")

// Tree is the parsed source of a module.
type Tree struct {
	// Module is the module's import path.
	Module string
	// Files are in lexical order of their paths.
	Files []*File
	fset  *token.FileSet
}

// File is one Go file.
type File struct {
	// Path is slash-separated, relative to the module's root.
	Path string
	// Dir is its directory, "." for the root.
	Dir string
	// Lines is its number of lines.
	Lines int
	// Test is true for a _test.go file.
	Test bool
	// Generated is true for a file with the usual comment of generated code.
	Generated bool
	syntax    *ast.File
}

// Load parses the module whose go.mod is in dir. Like the go command it omits testdata, vendor, nested modules, and
// directories that begin with "." or "_". It fails on a file that cannot be parsed.
func Load(dir string) (*Tree, error) {
	root := os.DirFS(dir)
	mod, err := fs.ReadFile(root, "go.mod")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoModule, err)
	}
	name := regexp.MustCompile(`(?m)^module\s+(\S+)`).FindSubmatch(mod)
	if name == nil {
		return nil, fmt.Errorf("%w: go.mod of %s names none", ErrNoModule, dir)
	}
	t := &Tree{Module: string(name[1]), fset: token.NewFileSet()}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && skipped(root, name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		return t.add(root, name)
	})
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", dir, err)
	}
	return t, nil
}

// skipped reports whether the go command's "./..." omits the directory.
func skipped(root fs.FS, dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || strings.ContainsAny(base[:1], "._") {
		return true
	}
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil
}

func (t *Tree) add(root fs.FS, name string) error {
	src, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.Files = append(t.Files, &File{
		Path:      name,
		Dir:       path.Dir(name),
		Lines:     bytes.Count(src, []byte("\n")),
		Test:      strings.HasSuffix(name, "_test.go"),
		Generated: ast.IsGenerated(syntax),
		syntax:    syntax,
	})
	return nil
}

// Graph returns which directories of the module are imported by the files of each directory that are not tests.
func (t *Tree) Graph() map[string]map[string]bool {
	all := make(map[string]map[string]bool)
	for _, f := range t.Files {
		if f.Test {
			continue
		}
		if all[f.Dir] == nil {
			all[f.Dir] = make(map[string]bool)
		}
		for _, spec := range f.syntax.Imports {
			if own, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), t.Module+"/"); ours {
				all[f.Dir][own] = true
			}
		}
	}
	return all
}

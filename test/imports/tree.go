package imports

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// ErrNoModule says that a directory holds no go.mod with a module line.
var ErrNoModule = errors.New("no module")

// Tree is the source of a module, parsed.
type Tree struct {
	// Module is the module's import path.
	Module string
	// Files are in lexical order of their paths.
	Files []*File
	fset  *token.FileSet
}

// File is one Go file.
type File struct {
	// Path is slash-separated, from the module's root.
	Path string
	// Dir is its folder, "." for the root.
	Dir string
	// Lines counts its lines.
	Lines int
	// Test tells a _test.go file.
	Test bool
	// Generated tells a file that says so in the customary comment.
	Generated bool
	syntax    *ast.File
}

// Load parses the module whose go.mod lies in dir. Like the go command it leaves
// out testdata, vendor, nested modules, and folders that begin with "." or "_". It
// fails on a file that does not parse.
func Load(dir string) (*Tree, error) {
	module, err := modulePath(dir)
	if err != nil {
		return nil, err
	}
	t := &Tree{Module: module, fset: token.NewFileSet()}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != dir && skipped(name) {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		return t.add(dir, name)
	})
	if err != nil {
		return nil, fmt.Errorf("read tree %s: %w", dir, err)
	}
	return t, nil
}

// skipped reports whether the go command's "./..." leaves the folder out.
func skipped(dir string) bool {
	base := filepath.Base(dir)
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func (t *Tree) add(root, name string) error {
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return err
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	syntax, err := parser.ParseFile(t.fset, rel, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.Files = append(t.Files, &File{
		Path:      rel,
		Dir:       path.Dir(rel),
		Lines:     bytes.Count(src, []byte("\n")),
		Test:      strings.HasSuffix(rel, "_test.go"),
		Generated: ast.IsGenerated(syntax),
		syntax:    syntax,
	})
	return nil
}

// folder is one package: the files of a folder, tests of both kinds among them.
type folder struct {
	dir   string
	files []*File
}

// packages returns the folders in the order of their first files.
func (t *Tree) packages() []folder {
	var all []folder
	index := map[string]int{}
	for _, f := range t.Files {
		i, known := index[f.Dir]
		if !known {
			i = len(all)
			index[f.Dir] = i
			all = append(all, folder{dir: f.Dir})
		}
		all[i].files = append(all[i].files, f)
	}
	return all
}

// line returns the line of a position in the file that holds it.
func (t *Tree) line(p token.Pos) int { return t.fset.Position(p).Line }

func modulePath(dir string) (string, error) {
	src, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoModule, err)
	}
	lines := bufio.NewScanner(bytes.NewReader(src))
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) == 2 && fields[0] == "module" {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("%w: go.mod of %s names none", ErrNoModule, dir)
}

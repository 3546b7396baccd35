package imports

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// names finds declarations of a package, or methods of one type, that differ only in case.
func (c *check) names(files []*File) {
	first := make(map[string]*ast.Ident)
	for _, f := range files {
		if f.Test || f.Generated {
			continue
		}
		declared(f.syntax, func(of string, id *ast.Ident) {
			key := of + "." + strings.ToLower(id.Name)
			other := first[key]
			if other == nil {
				first[key] = id
				return
			}
			if other.Name != id.Name { // equal names are for other platforms, or blank
				c.report(f.Path, id, fmt.Sprintf("%s and %s differ only in case", other.Name, id.Name),
					"a package has one, and a type has one", "said aloud they are one name for two things")
			}
		})
	}
}

// declared calls each with the declarations of a file, and with the type of a method, or "" for others.
func declared(f *ast.File, each func(of string, id *ast.Ident)) {
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			of := ""
			if decl.Recv != nil {
				of = receiver(decl.Recv.List[0].Type)
			}
			each(of, decl.Name)
		case *ast.GenDecl:
			if decl.Tok == token.IMPORT {
				continue
			}
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					each("", spec.Name)
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						each("", id)
					}
				}
			}
		}
	}
}

// receiver returns the name of a method's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.ParenExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	}
	return ""
}

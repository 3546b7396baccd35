package imports

import (
	"fmt"
	"go/doc"
	"slices"
	"strings"
)

// What a file may hold, in lines.
const (
	longest = 500 // no file is longer
	long    = 300 // nine of ten files are shorter
)

// comments checks that each package says, once, what it is for.
func comments(tree *Tree) []Violation {
	var found []Violation
	for _, p := range tree.packages() {
		file, text := p.dir, ""
		var where []string
		for _, f := range documented(p.files) {
			file, text = f.Path, f.syntax.Doc.Text()
			where = append(where, f.Path)
		}
		v := Violation{File: file, Reason: "a package that cannot say what it is for is two, or none"}
		switch name := strings.TrimSuffix(p.files[0].syntax.Name.Name, "_test"); {
		case len(where) == 0:
			v.Found, v.Rule = "no package comment", "each package has one"
		case len(where) > 1:
			v.Found, v.Rule = "package comments in "+strings.Join(where, ", "), "each package has one, in one file"
		case name != "main" && !names(text, name) && !names(text, name+"_test"):
			v.Found, v.Rule = "a package comment that names another package", `it begins with "Package" and the name`
		case slices.Contains(strings.Fields(new(doc.Package).Synopsis(text)), "and"):
			v.Found, v.Rule = `"and" in the package comment's first sentence`, "it gives the package's one reason to exist"
		default:
			continue
		}
		found = append(found, v)
	}
	return found
}

// names reports whether a package comment begins as the one of the named package does.
func names(text, name string) bool {
	return strings.HasPrefix(text, "Package "+name+" ")
}

// documented returns the files that carry a package comment.
func documented(files []*File) []*File {
	var with []*File
	for _, f := range files {
		if f.syntax.Doc.Text() != "" {
			with = append(with, f)
		}
	}
	return with
}

// lengths checks that no file is too long to be read in one go.
func lengths(tree *Tree) []Violation {
	const reason = "a file has one subject, and a reader holds it in mind"
	var found []Violation
	var tall []string
	files := 0
	for _, f := range tree.Files {
		if f.Generated {
			continue
		}
		files++
		if f.Lines >= long {
			tall = append(tall, f.Path)
		}
		if f.Lines > longest {
			found = append(found, Violation{
				File: f.Path, Found: fmt.Sprintf("%d lines", f.Lines),
				Rule: fmt.Sprintf("no file has more than %d", longest), Reason: reason,
			})
		}
	}
	if len(tall)*10 > files {
		found = append(found, Violation{
			File:  ".",
			Found: fmt.Sprintf("%d of %d files have %d lines or more: %s", len(tall), files, long, strings.Join(tall, ", ")),
			Rule:  "nine of ten files are shorter", Reason: reason,
		})
	}
	return found
}

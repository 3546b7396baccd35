package imports

import (
	"cmp"
	"fmt"
	"slices"
)

// Violation is one place that breaks one rule.
type Violation struct {
	// File is a file's or a folder's path from the module's root; Line is 0 where the whole is meant.
	File string
	Line int
	// Found says what is there, Rule what should be, Reason why.
	Found, Rule, Reason string
}

// String gives the violation as one line that names all of it.
func (v Violation) String() string {
	place := v.File
	if v.Line > 0 {
		place = fmt.Sprintf("%s:%d", v.File, v.Line)
	}
	return fmt.Sprintf("%s: %s; rule: %s; reason: %s", place, v.Found, v.Rule, v.Reason)
}

// Check returns what in the tree breaks the rules, in the order of the paths.
func (t *Tables) Check(tree *Tree) []Violation {
	var all []Violation
	for _, f := range tree.Files {
		all = append(all, t.imports(tree, f)...)
		all = append(all, t.purity(tree, f)...)
		all = append(all, initializers(tree, f)...)
	}
	all = append(all, t.unnamed(tree)...)
	all = append(all, comments(tree)...)
	all = append(all, lengths(tree)...)
	slices.SortStableFunc(all, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return all
}

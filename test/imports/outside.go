package imports

import (
	"fmt"
	"strings"
)

// standard reports whether path is of the standard library: its first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// standard returns the rule that an import of the standard library breaks, if it does.
func (t *Tables) standard(f *File, path string) (rule, reason string) {
	for _, d := range t.Denied {
		if !below(d.Path, path) || !fitsAny(d.In, f.Dir) || fitsAny(d.But, f.Dir) || d.Tests && f.Test {
			continue
		}
		return fmt.Sprintf("%s is closed to %s", d.Path, everyone(d.In, d.But)), d.Reason
	}
	return "", ""
}

// library returns the rule that an import of a dependency breaks, if it does.
func (t *Tables) library(f *File, path string) (rule, reason string) {
	var row Library
	for _, l := range t.Libraries {
		if below(l.Path, path) && len(l.Path) > len(row.Path) {
			row = l
		}
	}
	switch {
	case row.Path == "":
		return "add a row for the library to libraries() in test/imports/libraries.go",
			"a dependency that nobody owns spreads"
	case row.Tests && f.Test, fitsAny(row.Only, f.Dir):
		return "", ""
	case len(row.Only) == 0:
		return fmt.Sprintf("nobody imports %s", row.Path), row.Reason
	}
	return fmt.Sprintf("%s is imported only by %s", row.Path, strings.Join(row.Only, ", ")), row.Reason
}

func everyone(patterns, but []string) string {
	who := strings.Join(patterns, ", ")
	if who == "..." {
		who = "all"
	}
	if len(but) > 0 {
		who += " but " + strings.Join(but, ", ")
	}
	return who
}

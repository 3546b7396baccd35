package imports_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/test/imports"
)

// TestTables: each row gives a reason, no row is there twice, and no pattern names what has no row.
func TestTables(t *testing.T) {
	t.Parallel()
	house := imports.House()
	var rows []string
	for _, p := range house.Packages {
		rows = append(rows, p.Path)
	}
	patterns := slices.Clone(house.Pure)
	for _, p := range house.Packages {
		reasoned(t, p.Path, p.Reason)
		patterns = append(append(patterns, p.May...), p.Tests...)
	}
	var paths []string
	for _, l := range house.Libraries {
		reasoned(t, l.Path, l.Reason)
		paths = append(paths, l.Path)
		patterns = append(patterns, l.Only...)
	}
	for _, d := range house.Denied {
		reasoned(t, d.Path, d.Reason)
		paths = append(paths, d.Path)
		patterns = append(append(patterns, d.In...), d.But...)
	}
	unique(t, rows)
	unique(t, paths)
	for _, p := range patterns {
		tree := strings.TrimSuffix(p, "/...")
		parent, group := strings.CutSuffix(p, "/*")
		known := p == "..." || slices.Contains(rows, p) || slices.Contains(rows, tree) ||
			group && slices.ContainsFunc(rows, func(r string) bool { return strings.HasPrefix(r, parent+"/") })
		if !known {
			t.Errorf("pattern %q names no row", p)
		}
	}
}

func reasoned(t *testing.T, path, reason string) {
	t.Helper()
	if len(strings.Fields(reason)) < 3 {
		t.Errorf("%s: %q is no reason", path, reason)
	}
}

func unique(t *testing.T, all []string) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(all))
	if n := len(slices.Compact(slices.Clone(sorted))); n != len(sorted) {
		t.Errorf("%d rows are there twice: %q", len(sorted)-n, sorted)
	}
}

package imports_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/test/imports"
)

// TestRules: each rule has a reason, no path has two rules, and every pattern matches something.
func TestRules(t *testing.T) {
	t.Parallel()
	house := house(t)
	var packages, all, patterns []string
	for _, r := range house.Packages {
		packages = append(packages, r.Path)
	}
	for _, r := range append(slices.Clone(house.Packages), house.Imports...) {
		reasoned(t, r.Path, r.Reason)
		all = append(all, r.Path)
		patterns = append(append(patterns, r.May...), r.Tests...)
	}
	unique(t, all)
	for _, p := range patterns {
		p = strings.TrimPrefix(p, "!")
		tree := strings.TrimSuffix(p, "/...")
		parent, group := strings.CutSuffix(p, "/*")
		known := p == "..." || slices.Contains(packages, p) || slices.Contains(packages, tree) ||
			group && slices.ContainsFunc(packages, func(r string) bool { return strings.HasPrefix(r, parent+"/") })
		if !known {
			t.Errorf("pattern %q names no rule", p)
		}
	}
}

// TestParse: a text with anything else than rules is refused.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"package a\n\tno colon\n", "package a:\n\tno packages\n", "package a: none\n", "folder a: none\n\tno such kind\n",
		"package a: none; test: b\n\tno such word\n", "\ta reason without a rule\n", "package a: none\n\tno end of line",
	} {
		if rules, err := imports.Parse("# above\n" + text); err == nil {
			t.Errorf("%q: read as %+v", text, rules)
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

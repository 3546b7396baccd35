package imports

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed rules.txt
var houseRules string

// Rule is one rule of rules.txt, which has the grammar.
type Rule struct {
	// Path is the pattern of a package, or an import path with everything below it.
	Path string
	// May lists patterns of packages of this module: for a package those that it may import, for an import those that may
	// import it.
	May []string
	// Tests is like May, for test files, in addition to it.
	Tests []string
	// ForTests says that only tests import the package.
	ForTests bool
	// Pure says that the package starts no goroutine and reads no clock.
	Pure bool
	// Reason says what breaks if the rule is broken.
	Reason string
}

// Rules are the rules of a tree.
type Rules struct{ Packages, Imports []Rule }

// House returns the rules of this module.
func House() (*Rules, error) { return Parse(houseRules) }

// Parse reads rules in the grammar of rules.txt.
func Parse(text string) (*Rules, error) {
	rule := regexp.MustCompile(`(?m)^(package|import) (\S+): ([^\t;]+)(?:;\s+tests:\s+([^\t;]+))?(;\s+for\s+tests)?(; pure)?\n((?:\t.+\n)+)`)
	comment := regexp.MustCompile(`(?m)^#.*$`)
	if rest := strings.TrimSpace(comment.ReplaceAllString(rule.ReplaceAllString(text, ""), "")); rest != "" {
		return nil, fmt.Errorf("read rules: %q is none", rest)
	}
	var rules Rules
	for _, m := range rule.FindAllStringSubmatch(text, -1) {
		list := &rules.Packages
		if m[1] == "import" {
			list = &rules.Imports
		}
		*list = append(*list, Rule{
			Path: m[2], May: strings.Fields(strings.TrimSuffix(m[3], "none")), Tests: strings.Fields(m[4]),
			ForTests: m[5] != "", Pure: m[6] != "", Reason: strings.Join(strings.Fields(m[7]), " "),
		})
	}
	return &rules, nil
}

// fits reports whether a pattern of the rules matches the package at path.
func fits(pattern, path string) bool {
	if dir, ok := strings.CutSuffix(pattern, "..."); ok {
		return dir == "" || below(strings.TrimSuffix(dir, "/"), path)
	}
	if dir, ok := strings.CutSuffix(pattern, "/*"); ok {
		name, found := strings.CutPrefix(path, dir+"/")
		return found && !strings.Contains(name, "/")
	}
	return pattern == path
}

// fitsAny reports whether one of the patterns matches the package, and none of those with "!" does.
func fitsAny(patterns []string, path string) (ok bool) {
	for _, p := range patterns {
		if not, found := strings.CutPrefix(p, "!"); found && fits(not, path) {
			return false
		}
		ok = ok || fits(p, path)
	}
	return ok
}

// below reports whether path is dir or is below it.
func below(dir, path string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

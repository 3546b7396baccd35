// Package conformance_test checks the documentation against the tree, above all docs/conformance.md.
package conformance_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// header starts a conformance table; other tables of the page are ignored.
var header = []string{"clause", "level", "what we do", "test", "state"}

// The states of a row.
const (
	done      = "done"
	deviation = "deviation"
	notServed = "not served"
)

var (
	// issue matches what the text of a row that is not done must name.
	issue = regexp.MustCompile(`\bissue [1-9][0-9]*\b`)

	// goTest splits "transport/unixsock.TestServe/half_close" into directory and function. The case after the slash is for
	// the reader: cases are often generated, so their names cannot be found in the source.
	goTest = regexp.MustCompile(`^([a-z0-9_/]+)\.((?:Test|Fuzz)[A-Za-z0-9_]*)(/\S+)?$`)
)

// row is one clause of a spec, as the page states it.
type row struct {
	line   int // 1-based
	clause string
	level  string
	text   string
	test   string // empty: none
	state  string
}

// parse reads the conformance tables of a page. It also reports malformed rows, so that one mistake does not hide the next.
// A table ends at an empty line, as in Markdown; rows after that are reported.
func parse(page string) (rows []row, faults []string) {
	lines := strings.Split(page, "\n")
	inTable, ours := false, false
	for i, line := range lines {
		cells := split(line)
		switch {
		case strings.TrimSpace(line) == "":
			inTable = false
		case !inTable && strings.HasPrefix(strings.TrimSpace(line), "|"):
			inTable, ours = true, slices.Equal(cells, header)
			if i+1 == len(lines) || !isRule(lines[i+1]) {
				faults = append(faults, fmt.Sprintf("line %d: a row outside of a table", i+1))
			}
		case !inTable || !ours || isRule(line):
		case len(cells) != len(header):
			faults = append(faults, fmt.Sprintf("line %d: %d columns, want %d", i+1, len(cells), len(header)))
		default:
			test := strings.Trim(cells[3], "`")
			if test == "-" {
				test = ""
			}
			rows = append(rows, row{line: i + 1, clause: cells[0], level: cells[1], text: cells[2], test: test, state: cells[4]})
		}
	}
	return rows, faults
}

// isRule reports whether a line is the rule below a table's header.
func isRule(line string) bool {
	return strings.Contains(line, "-") && strings.Trim(line, "|-: ") == ""
}

// split splits a table line into trimmed cells, without the empty ends outside of the outer bars.
func split(line string) []string {
	line = strings.TrimSpace(line)
	cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(c)
	}
	return cells
}

// check reports what is wrong with rows, given the module's source tree.
func check(rows []row, src fs.FS) []string {
	var faults []string
	seen := make(map[string]int)
	for _, r := range rows {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Sprintf("line %d: %s: ", r.line, r.clause)+fmt.Sprintf(format, args...))
		}
		if first, ok := seen[r.clause]; ok {
			fault("listed already in line %d", first)
		} else {
			seen[r.clause] = r.line
		}
		if !slices.Contains([]string{"MUST", "SHOULD", "MAY", "table"}, r.level) {
			fault("level %q is none of MUST, SHOULD, MAY, table", r.level)
		}
		if says := strings.Contains(r.text, "Deviation:"); says != (r.state == deviation) && r.state != notServed {
			fault("the state is deviation where the text gives the reason after \"Deviation:\", and nowhere else")
		}
		switch r.state {
		case done, deviation:
			if err := find(src, r.test); err != nil {
				fault("%v", err)
			}
		case notServed:
			if r.test != "" {
				fault("not served, so no test can prove it")
			}
			if !issue.MatchString(r.text) {
				fault("not served, and the text names no issue that brings it")
			}
		default:
			fault("state %q is none of done, deviation, not served", r.state)
		}
	}
	return faults
}

// find searches for the test of a row by the name on the page.
func find(src fs.FS, name string) error {
	if name == "" {
		return errors.New("no proving test")
	}
	if path.Ext(name) == ".txtar" {
		if _, err := fs.Stat(src, name); err != nil {
			return fmt.Errorf("find script: %w", err)
		}
		return nil
	}
	m := goTest.FindStringSubmatch(name)
	if m == nil {
		return fmt.Errorf("%q is neither one folder.TestName nor one .txtar file", name)
	}
	files, err := fs.Glob(src, m[1]+"/*_test.go")
	if err != nil {
		return fmt.Errorf("list tests: %w", err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(src, file)
		if err != nil {
			return fmt.Errorf("read test: %w", err)
		}
		if strings.Contains("\n"+string(text), "\nfunc "+m[2]+"(") {
			return nil
		}
	}
	return fmt.Errorf("no func %s in %s", m[2], m[1])
}

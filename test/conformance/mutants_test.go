package conformance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// A mutant is a patch that violates clauses. Its file is named after the first of them and starts with the line "Clauses:
// BRIDGE 4.2.1 #6, MESSAGE 5.1 #2"; the rest is output of `git diff`.
type mutant struct {
	file    string
	clauses []string
	patch   []byte
	touches []string // the files that the patch changes
}

// slug converts the clause "BRIDGE 4.2.1 #6" to "bridge-4.2.1-6".
func slug(clause string) string {
	return strings.NewReplacer(" #", "-", " ", "-").Replace(strings.ToLower(clause))
}

var touched = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`)

// mutants reads the patches in a directory.
func mutants(dir string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, fmt.Errorf("list mutants: %w", err)
	}
	var all []mutant
	for _, file := range files {
		patch, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read mutant: %w", err)
		}
		m := mutant{file: filepath.Base(file), patch: patch}
		first, _, _ := strings.Cut(string(patch), "\n")
		if list, ok := strings.CutPrefix(first, "Clauses: "); ok {
			m.clauses = strings.Split(list, ", ")
		}
		for _, match := range touched.FindAllSubmatch(patch, -1) {
			m.touches = append(m.touches, string(match[1]))
		}
		all = append(all, m)
	}
	return all, nil
}

// checkMutants reports what is wrong with mutants, given the rows of the page.
func checkMutants(all []mutant, rows []row) []string {
	var faults []string
	for _, m := range all {
		fault := func(format string, args ...any) {
			faults = append(faults, m.file+": "+fmt.Sprintf(format, args...))
		}
		if len(m.clauses) == 0 {
			fault(`the first line is not "Clauses: …"`)
			continue
		}
		if want := slug(m.clauses[0]) + ".patch"; m.file != want {
			fault("want the name %s, after its first clause", want)
		}
		for _, c := range m.clauses {
			i := slices.IndexFunc(rows, func(r row) bool { return r.clause == c })
			switch {
			case i < 0:
				fault("the page has no clause %q", c)
			case rows[i].test == "":
				fault("%s has no test", c)
			}
		}
		if len(m.touches) == 0 {
			fault("changes no file")
		}
		for _, name := range m.touches {
			if strings.HasSuffix(name, "_test.go") || path.Ext(name) != ".go" {
				fault("changes %s, which is not production code", name)
			}
		}
	}
	return faults
}

// exempt reads the file of the clauses that have no mutant: "BRIDGE 4.2.1 #6: reason", one a line.
func exempt(text string) (reasons map[string]string, faults []string) {
	reasons = make(map[string]string)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		clause, reason, ok := strings.Cut(line, ": ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !ok || reason == "":
			faults = append(faults, fmt.Sprintf("%q is not of the form CLAUSE: REASON", line))
		case reasons[clause] != "":
			faults = append(faults, fmt.Sprintf("%s is listed twice", clause))
		default:
			reasons[clause] = reason
		}
	}
	return reasons, faults
}

// checkCovered reports each MUST and each table row that has neither a mutant nor a reason to have none, and reasons of other
// clauses.
func checkCovered(all []mutant, rows []row, reasons map[string]string) []string {
	var faults []string
	left := maps.Clone(reasons)
	for _, r := range rows {
		delete(left, r.clause)
		broken := slices.ContainsFunc(all, func(m mutant) bool { return slices.Contains(m.clauses, r.clause) })
		switch _, exempt := reasons[r.clause]; {
		case exempt && broken:
			faults = append(faults, fmt.Sprintf("line %d: %s: a mutant breaks it, and there is a reason why none does", r.line, r.clause))
		case exempt || broken || r.state == notServed || r.level != "MUST" && r.level != "table":
		default:
			faults = append(faults, fmt.Sprintf("line %d: %s: no mutant breaks it, and there is no reason why none does", r.line, r.clause))
		}
	}
	for _, clause := range slices.Sorted(maps.Keys(left)) {
		faults = append(faults, fmt.Sprintf("the page has no clause %q", clause))
	}
	return faults
}

// apply copies the files that a patch changes to dir, patches the copies, and returns an overlay for the go command.
func (m mutant) apply(root, dir string) (overlay []byte, err error) {
	replace := make(map[string]string)
	for _, name := range m.touches {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, fmt.Errorf("copy source: %w", err)
		}
		copied := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
			return nil, fmt.Errorf("copy source: %w", err)
		}
		if err := os.WriteFile(copied, text, 0o600); err != nil {
			return nil, fmt.Errorf("copy source: %w", err)
		}
		replace[filepath.Join(root, name)] = copied
	}
	cmd := exec.Command("git", "apply", "-")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // not in a repository, so the files are plain
	cmd.Stdin = bytes.NewReader(m.patch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git apply: %w\n%s", err, out)
	}
	return json.Marshal(map[string]any{"Replace": replace})
}

// TestMutantsApply checks each patch against the page and against the tree, without running a test.
func TestMutantsApply(t *testing.T) {
	t.Parallel()
	all, rows := load(t)
	for _, f := range checkMutants(all, rows) {
		t.Errorf("mutants/%s", f)
	}
	reasons, faults := exempt(testkit.ReadFile(t, "mutants/without.txt"))
	for _, f := range faults {
		t.Errorf("mutants/without.txt: %s", f)
	}
	for _, f := range checkCovered(all, rows, reasons) {
		t.Errorf("docs/conformance.md: %s", f)
	}
	root := moduleRoot(t)
	for _, m := range all {
		if _, err := m.apply(root, t.TempDir()); err != nil {
			t.Errorf("mutants/%s no longer applies: refresh it with git apply -3: %v", m.file, err)
		}
	}
}

// TestMutants builds the tree with each mutant; the tests of its clauses must fail. It needs PWOS_LONG=1. A single mutant:
// -run TestMutants/bridge-4.2.1-6. PWOS_SHARD=1/4 runs every fourth mutant, from the first on.
func TestMutants(t *testing.T) {
	t.Parallel()
	if os.Getenv("PWOS_LONG") == "" {
		t.Skip("builds the tree for each mutant: needs PWOS_LONG=1")
	}
	shard, shards := 1, 1
	if s := os.Getenv("PWOS_SHARD"); s != "" {
		if _, err := fmt.Sscanf(s, "%d/%d", &shard, &shards); err != nil || shard < 1 || shard > shards {
			t.Fatalf("PWOS_SHARD=%q: want i/n, from 1/n to n/n", s)
		}
	}
	all, rows := load(t)
	root := moduleRoot(t)
	for i, m := range all {
		if i%shards != shard-1 {
			continue
		}
		t.Run(strings.TrimSuffix(m.file, ".patch"), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			overlay, err := m.apply(root, dir)
			testkit.Must(t, err)
			file := filepath.Join(dir, "overlay.json")
			testkit.Must(t, os.WriteFile(file, overlay, 0o600))
			var ran []string
			for _, r := range rows {
				if slices.Contains(m.clauses, r.clause) && !slices.Contains(ran, r.test) {
					ran = append(ran, r.test)
					if err := killed(t, root, file, r.test); err != nil {
						t.Errorf("%s: %v", r.clause, err)
					}
				}
			}
		})
	}
}

// killed runs a test with an overlay and returns an error unless the test itself fails.
func killed(t *testing.T, root, overlay, test string) error {
	t.Helper()
	folder, function, pattern := selector(test)
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-timeout=5m", "-run", pattern, "./"+folder)
	cmd.Dir = root
	// The variables are in the environment, so that binaries that a test builds have the mutant too. The failure is
	// expected, so rapid is told to write no file about it.
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay), "PWOS_LONG=", "RAPID_NOFAILFILE=true")
	out, err := cmd.CombinedOutput()
	switch exit := (*exec.ExitError)(nil); {
	case err == nil:
		return fmt.Errorf("%s passes with the mutant", test)
	case !errors.As(err, &exit):
		return err
	case !bytes.Contains(out, []byte("--- FAIL: "+function+" ")):
		return fmt.Errorf("%s did not run to a failure; does the mutant compile?\n%s", test, out)
	}
	return nil
}

// selector splits the name of a test into its directory, its function, and the argument of `go test -run`.
func selector(test string) (folder, function, pattern string) {
	if script, ok := strings.CutSuffix(test, ".txtar"); ok {
		return path.Dir(script), "TestScripts", "^TestScripts$/^" + path.Base(script) + "$"
	}
	m := goTest.FindStringSubmatch(test)
	if m == nil {
		return "", test, "^$" // TestPage reports it
	}
	pattern = "^" + m[2] + "$"
	for part := range strings.SplitSeq(strings.TrimPrefix(m[3], "/"), "/") {
		if part != "" {
			pattern += "/^" + regexp.QuoteMeta(part) + "$"
		}
	}
	return m[1], m[2], pattern
}

func load(t *testing.T) ([]mutant, []row) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("mutants are applied by git, which is not installed")
	}
	all, err := mutants("mutants")
	testkit.Must(t, err)
	page, err := os.ReadFile("../../docs/conformance.md")
	testkit.Must(t, err)
	rows, _ := parse(string(page))
	return all, rows
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	testkit.Must(t, err)
	return root
}

package conformance_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestPage checks the page against the tree.
func TestPage(t *testing.T) {
	t.Parallel()
	src := os.DirFS("../..")
	page, err := os.ReadFile("../../docs/conformance.md")
	testkit.Must(t, err)
	rows, faults := parse(string(page))
	for _, f := range append(faults, check(rows, src)...) {
		t.Errorf("docs/conformance.md: %s", f)
	}

	// A page that the parser no longer understands would otherwise pass with no rows.
	specs := make(map[string]bool)
	for _, r := range rows {
		spec, _, _ := strings.Cut(r.clause, " ")
		specs[spec] = true
	}
	want := map[string]bool{"BRIDGE": true, "MESSAGE": true, "EVENT": true, "ABI": true, "CAP": true, "PROTOCOL": true}
	if diff := cmp.Diff(want, specs); diff != "" {
		t.Errorf("specs with rows (-want +got):\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	src := fstest.MapFS{
		"schema/decode_test.go":            {Data: []byte("package schema_test\n\nfunc TestDecode(t *testing.T) {\n}\n\nfunc FuzzDecode(f *testing.F) {\n}\n")},
		"schema/decode.go":                 {Data: []byte("package schema\n\nfunc TestHidden(t *testing.T) {\n}\n")},
		"transport/unixsock/serve_test.go": {Data: []byte("func TestServe(t *testing.T) {\n\t// func TestComment(t\n}\n")},
		"test/testdata/script/pipe.txtar":  {Data: []byte("exec pwos\n")},
	}
	const top = "| clause | level | what we do | test | state |\n|---|---|---|---|---|\n"

	for name, tc := range map[string]struct {
		page string
		want []string
	}{
		"all well": {
			page: "# Title\n\n" + top +
				"| X 1 | MUST | a: issue 2 brings it | - | not served |\n" +
				"| X 2 #1 | SHOULD | b | `schema.TestDecode/bad_utf8` | done |\n" +
				"| X 2 #2 | table | c. Deviation: d, because e | transport/unixsock.TestServe | deviation |\n" +
				"\ntext\n\n" + top +
				"| Y 1 | MAY | d | test/testdata/script/pipe.txtar | done |\n",
		},
		"another table":          {page: "| name | spec |\n|---|---|\n| X | not a clause |\n"},
		"done without a test":    {page: top + "| X 1 | MUST | a | - | done |\n", want: []string{"line 3: X 1: no proving test"}},
		"done with an empty one": {page: top + "| X 1 | MUST | a |  | done |\n", want: []string{"line 3: X 1: no proving test"}},
		"deviation without a test": {
			page: top + "| X 1 | MUST | Deviation: a | - | deviation |\n",
			want: []string{"line 3: X 1: no proving test"},
		},
		"two tests": {
			page: top + "| X 1 | MUST | a | `schema.TestDecode`, `schema.FuzzDecode` | done |\n",
			want: []string{"line 3: X 1: \"schema.TestDecode`, `schema.FuzzDecode\" is neither one folder.TestName nor one .txtar file"},
		},
		"no such function": {
			page: top + "| X 1 | MUST | a | schema.TestDec | done |\n",
			want: []string{"line 3: X 1: no func TestDec in schema"},
		},
		"no such folder": {
			page: top + "| X 1 | MUST | a | scheme.TestDecode | done |\n",
			want: []string{"line 3: X 1: no func TestDecode in scheme"},
		},
		"not in a test file": {
			page: top + "| X 1 | MUST | a | schema.TestHidden | done |\n",
			want: []string{"line 3: X 1: no func TestHidden in schema"},
		},
		"only in a comment": {
			page: top + "| X 1 | MUST | a | transport/unixsock.TestComment | done |\n",
			want: []string{"line 3: X 1: no func TestComment in transport/unixsock"},
		},
		"no such script": {
			page: top + "| X 1 | MUST | a | test/testdata/script/gone.txtar | done |\n",
			want: []string{"line 3: X 1: find script: open test/testdata/script/gone.txtar: file does not exist"},
		},
		"not a test's name": {
			page: top + "| X 1 | MUST | a | by hand | done |\n",
			want: []string{`line 3: X 1: "by hand" is neither one folder.TestName nor one .txtar file`},
		},
		"unknown state": {
			page: top + "| X 1 | MUST | a | schema.TestDecode | Done |\n",
			want: []string{`line 3: X 1: state "Done" is none of done, deviation, not served`},
		},
		"unknown level": {
			page: top + "| X 1 | must | a | schema.TestDecode | done |\n",
			want: []string{`line 3: X 1: level "must" is none of MUST, SHOULD, MAY, table`},
		},
		"deviation without a reason, reason without a deviation": {
			page: top + "| X 1 | MUST | a | schema.TestDecode | deviation |\n| X 2 | MUST | Deviation: a | schema.TestDecode | done |\n",
			want: []string{
				`line 3: X 1: the state is deviation where the text gives the reason after "Deviation:", and nowhere else`,
				`line 4: X 2: the state is deviation where the text gives the reason after "Deviation:", and nowhere else`,
			},
		},
		"not served, with a test and without an issue": {
			page: top + "| X 1 | MUST | a | schema.TestDecode | not served |\n",
			want: []string{
				"line 3: X 1: not served, so no test can prove it",
				"line 3: X 1: not served, and the text names no issue that brings it",
			},
		},
		"same clause twice": {
			page: top + "| X 1 | MUST | issue 2 | - | not served |\n\n" + top + "| X 1 | MUST | issue 2 | - | not served |\n",
			want: []string{"line 7: X 1: listed already in line 3"},
		},
		"a column short":  {page: top + "| X 1 | MUST | a | done |\n", want: []string{"line 3: 4 columns, want 5"}},
		"a bar too many":  {page: top + "| X 1 | MUST | a | b | - | done |\n", want: []string{"line 3: 6 columns, want 5"}},
		"no bar in front": {page: top + "X 1 | MUST | a | - |\n", want: []string{"line 3: 4 columns, want 5"}},
		"cut off by an empty line": {
			page: top + "| X 1 | MUST | issue 2 | - | not served |\n\n| X 2 | MUST | issue 2 | - | not served |\n",
			want: []string{"line 5: a row outside of a table"},
		},
		"text in a table": {
			page: top + "| X 1 | MUST | issue 2 | - | not served |\nmore\n",
			want: []string{"line 4: 1 columns, want 5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, faults := parse(tc.page)
			faults = append(faults, check(rows, src)...)
			if diff := cmp.Diff(tc.want, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRow(t *testing.T) {
	t.Parallel()
	rows, faults := parse("| clause | level | what we do | test | state |\n|---|---|---|---|---|\n| X 1 #2 | MUST | a, b | `p/q.TestA/x` | done |\n")
	want := []row{{line: 3, clause: "X 1 #2", level: "MUST", text: "a, b", test: "p/q.TestA/x", state: "done"}}
	if diff := cmp.Diff(want, rows, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if len(faults) != 0 {
		t.Errorf("faults: %q", faults)
	}
}

func TestCheckMutants(t *testing.T) {
	t.Parallel()
	rows := []row{{clause: "X 1 #2", test: "p.TestA"}, {clause: "X 2", test: "p.TestB"}, {clause: "X 3"}}
	touches := []string{"p/a.go"}
	for name, tc := range map[string]struct {
		mutant mutant
		want   []string
	}{
		"all well":   {mutant: mutant{file: "x-1-2.patch", clauses: []string{"X 1 #2", "X 2"}, touches: touches}},
		"no clauses": {mutant{file: "x-1-2.patch", touches: touches}, []string{`x-1-2.patch: the first line is not "Clauses: …"`}},
		"named after another": {
			mutant{file: "x-2.patch", clauses: []string{"X 1 #2", "X 2"}, touches: touches},
			[]string{"x-2.patch: want the name x-1-2.patch, after its first clause"},
		},
		"no such clause": {
			mutant{file: "x-4.patch", clauses: []string{"X 4"}, touches: touches},
			[]string{`x-4.patch: the page has no clause "X 4"`},
		},
		"nothing to run":  {mutant{file: "x-3.patch", clauses: []string{"X 3"}, touches: touches}, []string{"x-3.patch: X 3 has no test"}},
		"changes nothing": {mutant{file: "x-2.patch", clauses: []string{"X 2"}}, []string{"x-2.patch: changes no file"}},
		"changes the test": {
			mutant{file: "x-2.patch", clauses: []string{"X 2"}, touches: []string{"p/a_test.go"}},
			[]string{"x-2.patch: changes p/a_test.go, which is not production code"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, checkMutants([]mutant{tc.mutant}, rows)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckCovered(t *testing.T) {
	t.Parallel()
	rows := []row{
		{line: 1, clause: "X 1", level: "MUST", state: done},
		{line: 2, clause: "X 2", level: "MUST", state: done},
		{line: 3, clause: "X 3", level: "MUST", state: deviation},
		{line: 4, clause: "X 4", level: "SHOULD", state: done},
		{line: 5, clause: "X 5", level: "table", state: done},
		{line: 6, clause: "X 6", level: "table", state: done},
		{line: 7, clause: "X 7", level: "table", state: notServed},
		{line: 8, clause: "X 8", level: "table", state: done},
	}
	const missing = ": no mutant breaks it, and there is no reason why none does"
	want := []string{
		"line 2: X 2" + missing, "line 3: X 3" + missing, "line 5: X 5" + missing,
		"line 8: X 8: a mutant breaks it, and there is a reason why none does",
		`the page has no clause "X 9"`,
	}
	reasons := map[string]string{"X 6": "r", "X 8": "r", "X 9": "r"}
	if diff := cmp.Diff(want, checkCovered([]mutant{{clauses: []string{"X 1", "X 8"}}}, rows, reasons)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestExempt(t *testing.T) {
	t.Parallel()
	reasons, faults := exempt("# why\n\nX 1 #2: it needs: an hour\nX 2\nX 1 #2: twice\nX 3: \n")
	if diff := cmp.Diff(map[string]string{"X 1 #2": "it needs: an hour"}, reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	want := []string{`"X 2" is not of the form CLAUSE: REASON`, "X 1 #2 is listed twice", `"X 3:" is not of the form CLAUSE: REASON`}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestSelector(t *testing.T) {
	t.Parallel()
	for test, want := range map[string][3]string{
		"transport/unixsock.TestServe": {"transport/unixsock", "TestServe", "^TestServe$"},
		"schema.TestDecode/bad_utf8/x": {"schema", "TestDecode", "^TestDecode$/^bad_utf8$/^x$"},
		"schema.FuzzDecode":            {"schema", "FuzzDecode", "^FuzzDecode$"},
		"test/scripts/auth.txtar":      {"test/scripts", "TestScripts", "^TestScripts$/^auth$"},
	} {
		folder, function, pattern := selector(test)
		if got := [3]string{folder, function, pattern}; got != want {
			t.Errorf("selector(%q) = %q, want %q", test, got, want)
		}
	}
}

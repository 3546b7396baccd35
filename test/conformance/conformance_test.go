package conformance_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestPage is the check itself: the page as it stands against the tree as it stands.
func TestPage(t *testing.T) {
	t.Parallel()
	src := os.DirFS("../..")
	page, err := os.ReadFile("../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, faults := parse(string(page))
	for _, f := range append(faults, check(rows, src)...) {
		t.Errorf("docs/conformance.md: %s", f)
	}

	// A page that the parser no longer understands would pass with no rows.
	specs := make(map[string]bool)
	for _, r := range rows {
		spec, _, _ := strings.Cut(r.clause, " ")
		specs[spec] = true
	}
	want := map[string]bool{"BRIDGE": true, "MESSAGE": true, "EVENT": true, "ABI": true, "CAP": true}
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
	const top = "| clause | what we do | test | state |\n|---|---|---|---|\n"

	for name, tc := range map[string]struct {
		page string
		want []string
	}{
		"all well": {
			page: "# Title\n\n" + top +
				"| X 1 | a | - | open #2 |\n" +
				"| X 2 #1 | b | `schema.TestDecode/bad_utf8`, schema.FuzzDecode | done |\n" +
				"| X 2 #2 | c | transport/unixsock.TestServe | open #13 |\n" +
				"\ntext\n\n" + top +
				"| Y 1 | d | test/testdata/script/pipe.txtar | done |\n",
		},
		"another table":          {page: "| name | spec |\n|---|---|\n| X | not a clause |\n"},
		"done without a test":    {page: top + "| X 1 | a | - | done |\n", want: []string{"line 3: X 1: done without a test"}},
		"done with an empty one": {page: top + "| X 1 | a |  | done |\n", want: []string{"line 3: X 1: done without a test"}},
		"no such function": {
			page: top + "| X 1 | a | schema.TestDec | done |\n",
			want: []string{"line 3: X 1: no func TestDec in schema"},
		},
		"no such folder": {
			page: top + "| X 1 | a | scheme.TestDecode | done |\n",
			want: []string{"line 3: X 1: no func TestDecode in scheme"},
		},
		"not in a test file": {
			page: top + "| X 1 | a | schema.TestHidden | done |\n",
			want: []string{"line 3: X 1: no func TestHidden in schema"},
		},
		"only in a comment": {
			page: top + "| X 1 | a | transport/unixsock.TestComment | done |\n",
			want: []string{"line 3: X 1: no func TestComment in transport/unixsock"},
		},
		"open, but names what is not there": {
			page: top + "| X 1 | a | schema.TestDecode, schema.TestLater | open #2 |\n",
			want: []string{"line 3: X 1: no func TestLater in schema"},
		},
		"no such script": {
			page: top + "| X 1 | a | test/testdata/script/gone.txtar | done |\n",
			want: []string{"line 3: X 1: find script: open test/testdata/script/gone.txtar: file does not exist"},
		},
		"not a test's name": {
			page: top + "| X 1 | a | by hand | done |\n",
			want: []string{`line 3: X 1: "by hand" is neither folder.TestName nor a .txtar file`},
		},
		"unknown state": {
			page: top + "| X 1 | a | - | open |\n| X 2 | a | - | open #0 |\n| X 3 | a | - | Done |\n",
			want: []string{
				`line 3: X 1: state "open" is neither done nor open #N`,
				`line 4: X 2: state "open #0" is neither done nor open #N`,
				`line 5: X 3: state "Done" is neither done nor open #N`,
			},
		},
		"same clause twice": {
			page: top + "| X 1 | a | - | open #2 |\n\n" + top + "| X 1 | b | - | open #3 |\n",
			want: []string{"line 7: X 1: listed already in line 3"},
		},
		"a column short":  {page: top + "| X 1 | a | open #2 |\n", want: []string{"line 3: 3 columns, want 4"}},
		"a bar too many":  {page: top + "| X 1 | a | b | - | open #2 |\n", want: []string{"line 3: 5 columns, want 4"}},
		"no bar in front": {page: top + "X 1 | a | - |\n", want: []string{"line 3: 3 columns, want 4"}},
		"cut off by an empty line": {
			page: top + "| X 1 | a | - | open #2 |\n\n| X 2 | a | - | open #2 |\n",
			want: []string{"line 5: a row outside of a table"},
		},
		"text in a table": {page: top + "| X 1 | a | - | open #2 |\nmore\n", want: []string{"line 4: 1 columns, want 4"}},
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
	rows, faults := parse("| clause | what we do | test | state |\n|---|---|---|---|\n| X 1 #2 | a, b | `p.TestA/x`, p/q.TestB | done |\n")
	want := []row{{line: 3, clause: "X 1 #2", tests: []string{"p.TestA/x", "p/q.TestB"}, state: "done"}}
	if diff := cmp.Diff(want, rows, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if len(faults) != 0 {
		t.Errorf("faults: %q", faults)
	}
}

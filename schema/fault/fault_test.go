package fault_test

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

var update = flag.Bool("update", false, "write docs/errors.md")

// TestWire checks that errors of both dialects have the message with the fix, and not the internal error.
func TestWire(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		fault          *fault.Fault
		message, event string
	}{
		{"bare", fault.MemoryNotFound.New("Key not found: a"), `{"code":404,"message":"Key not found: a"}`, `{"message":"Key not found: a","code":"NOT_FOUND"}`},
		{
			"fix and detail", fault.CapabilityDenied.New("pid %d may not", 7).WithFix("allow %s", "it").With("syscall", "A.B"),
			`{"code":403,"message":"pid 7 may not: allow it"}`, `{"message":"pid 7 may not: allow it","code":"UNAUTHORIZED","details":{"syscall":"A.B"}}`,
		},
		{
			"field", fault.WireInvalidInput.New("key must be a string").At("key").With("key", "1").With("key", "2"),
			`{"code":422,"message":"key must be a string"}`, `{"message":"key must be a string","code":"INVALID_INPUT","details":{"field":"key","key":"2"}}`,
		},
		{
			"the whole envelope", fault.WireSchema.New("not an object"),
			`{"code":422,"message":"not an object"}`, `{"message":"not an object","code":"SCHEMA_VIOLATION","details":{"field":""}}`,
		},
		{
			"cause", fault.UpstreamFailed.New("no answer").Because(fault.MemoryNotFound.New("no key").With("key", "a")),
			`{"code":502,"message":"no answer","cause":{"code":404,"message":"no key"}}`,
			`{"message":"no answer","code":"INTERNAL_ERROR","details":{"cause":{"message":"no key","code":"NOT_FOUND","details":{"key":"a"}}}}`,
		},
		{
			"the internal error is not shown", fault.KernelInternal.New("see the log").Wrap(errors.New("/secret")),
			`{"code":500,"message":"see the log"}`, `{"message":"see the log","code":"INTERNAL_ERROR"}`,
		},
		{"bad UTF-8", fault.ToolFailed.New("a\xffb"), "{\"code\":502,\"message\":\"a\ufffdb\"}", "{\"message\":\"a\ufffdb\",\"code\":\"INTERNAL_ERROR\"}"},
		{"a newer kernel's code", &fault.Fault{Status: 451, Message: "no"}, `{"code":451,"message":"no"}`, `{"message":"no","code":"INTERNAL_ERROR"}`},
	} {
		if got := string(fault.AppendData(nil, tt.fault)); got != tt.message {
			t.Errorf("%s: OsMessage %s, want %s", tt.name, got, tt.message)
		}
		if got := string(fault.AppendEventData(nil, tt.fault)); got != tt.event {
			t.Errorf("%s: OsEvent %s, want %s", tt.name, got, tt.event)
		}
	}
}

// TestJournal checks that a fault that is decoded from its entry can be sent in either dialect and matched by its id.
func TestJournal(t *testing.T) {
	t.Parallel()
	for _, f := range []*fault.Fault{
		fault.MemoryNotFound.New("no key").With("key", `a"b`).With("other", ""),
		fault.WireInvalidInput.New("wrong").At("data.x"),
		fault.UpstreamFailed.New("no answer").Because(fault.CryptoNoKey.New("no key").Because(fault.HTTPTimeout.New("late"))),
		{Kind: fault.NotFound, Message: "without an id"},
		{Kind: fault.InvalidInput, Message: "of an id that this kernel does not know", ID: "moon.full"},
	} {
		raw := schema.AppendOutcome(nil, schema.KindCommand, &schema.Outcome{Err: f})
		got, err := schema.DecodeOutcome(raw)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if string(fault.AppendEventData(nil, got.Err)) != string(fault.AppendEventData(nil, f)) || string(fault.AppendRecord(nil, got.Err)) != string(fault.AppendRecord(nil, f)) {
			t.Errorf("%s came back as %+v, want %+v", raw, got.Err, f)
		}
		for want, have := f, got.Err; want != nil; want, have = want.Cause, have.Cause {
			if have.ID != want.ID || have.Kind != want.Kind {
				t.Errorf("%s: id %s of kind %v, want %s of %v", raw, have.ID, have.Kind, want.ID, want.Kind)
			}
		}
	}
}

// TestOldEntries checks that an error in a journal of a kernel without ids has the kind of its code, and an id if recovery depends on it.
func TestOldEntries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw  string
		kind fault.Kind
		id   fault.ID
	}{
		{`{"kind":"error","data":{"code":403,"message":"pid 1 may not"}}`, fault.Forbidden, ""},
		{`{"kind":"error","data":{"code":404,"message":"Key not found: a"},"class":6}`, fault.NotFound, ""},
		{`{"kind":"error","data":{"code":409,"message":"idempotency key \"k\" was used for another message: take a new key"}}`, fault.Conflict, fault.IdempotencyOtherBody},
		{`{"kind":"error","data":{"code":409,"message":"the first message with idempotency key \"k\" is still being carried out: wait for its answer"}}`, fault.Conflict, fault.IdempotencyUnderWay},
		{`{"kind":"error","data":{"code":409,"message":"already there"}}`, fault.Conflict, ""},
	} {
		o, err := schema.DecodeOutcome([]byte(tt.raw))
		if err != nil || o.Err.Kind != tt.kind || o.Err.ID != tt.id {
			t.Errorf("%s: %+v, %v, want %v with id %q", tt.raw, o.Err, err, tt.kind, tt.id)
		}
	}
}

func TestIs(t *testing.T) {
	t.Parallel()
	f := fault.CapabilityDenied.New("no").Because(fault.MemoryNotFound.New("no key")).Wrap(io.ErrUnexpectedEOF)
	err := fmt.Errorf("around it: %w", f)
	for _, is := range []error{fault.CapabilityDenied, fault.Forbidden, fault.MemoryNotFound, fault.NotFound, io.ErrUnexpectedEOF, f} {
		if !errors.Is(err, is) {
			t.Errorf("errors.Is does not match %v", is)
		}
	}
	for _, not := range []error{fault.CapabilityExpired, fault.Conflict, io.EOF, fault.CapabilityDenied.New("no")} {
		if errors.Is(err, not) {
			t.Errorf("errors.Is matches %v", not)
		}
	}
	if text := err.Error(); text != "around it: no: no key" {
		t.Errorf("the text of the fault is %q", text)
	}
}

// TestOf checks that Of returns the first fault of a chain, and otherwise a fault without the text of the error.
func TestOf(t *testing.T) {
	t.Parallel()
	f := fault.MemoryNotFound.New("no key")
	for _, err := range []error{f, fmt.Errorf("/secret: %w", f), errors.Join(io.EOF, f), fault.MemoryNotFound.New("no key").Wrap(errors.New("/secret"))} {
		if got := fault.Of(err); got.ID != f.ID || got.Error() != "no key" {
			t.Errorf("of %v: %v", err, got)
		}
	}
	for _, err := range []error{io.EOF, errors.New("/secret"), fault.MemoryNotFound} {
		if got := fault.Of(err); got.ID != fault.KernelInternal || strings.Contains(got.Error(), "secret") {
			t.Errorf("of %v: %v", err, got)
		}
	}
}

// TestSetID checks that a decoded fault keeps its code, whatever its id.
func TestSetID(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code int
		id   fault.ID
		kind fault.Kind
	}{
		{404, fault.MemoryNotFound, fault.NotFound},
		{404, fault.WireUnknownSyscall, fault.UnknownSyscall},
		{409, fault.MemoryNotFound, fault.Conflict},
		{429, "moon.full", fault.QuotaExceeded},
	} {
		f := &fault.Fault{Kind: fault.KindOf(tt.code)}
		f.SetID(tt.id)
		if f.ID != tt.id || f.Code() != tt.code || f.Kind != tt.kind {
			t.Errorf("%d %s: %d, %v", tt.code, tt.id, f.Code(), f.Kind)
		}
	}
}

// TestCatalogue checks that every id has the form domain.reason, a valid kind, and sentences as meaning and fix.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[a-z]+\.[a-z][a-z_]*[a-z]$`)
	sentence := regexp.MustCompile(`^["A-Za-z].*\.$`)
	all := fault.Catalogue()
	for _, e := range all {
		if !form.MatchString(string(e.ID)) || !e.Kind.Valid() || !sentence.MatchString(e.Meaning) || !sentence.MatchString(e.Fix) || strings.Contains(e.Meaning+e.Fix, "|") {
			t.Errorf("%+v", e)
		}
	}
	if !slices.IsSortedFunc(all, func(a, b fault.Entry) int { return strings.Compare(string(a.ID), string(b.ID)) }) {
		t.Error("the catalogue is not sorted")
	}
}

// TestDocs checks that docs/errors.md is the catalogue. "go test ./schema/fault -update" writes the file.
func TestDocs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# Errors\n\nEvery error has an id, in `metadata.error` of its answer, that never changes. Its message may. `pwos describe --errors [ID]` adds\n" +
		"what to do, as the error itself does.\n\n" +
		"Each heading has the code of OsMessage, that of OsEvent, and the exit status of a verb, unless the row has another. The streaming\n" +
		"client ends with 1 if any error passed.\n")
	for kind := fault.Kind(0); kind.Valid(); kind++ {
		heading := fmt.Sprintf("\n## %d, %s, exit %d: %v\n\nid | meaning\n---|---\n", kind.Status(), kind.Word(), (&fault.Fault{Kind: kind}).Exit(), kind)
		for _, e := range fault.Catalogue() {
			if e.Kind != kind {
				continue
			}
			fmt.Fprintf(&b, "%s`%s` | %s", heading, e.ID, e.Meaning)
			if exit := e.ID.Exit(); exit != (&fault.Fault{Kind: kind}).Exit() {
				fmt.Fprintf(&b, " Exit %d.", exit)
			}
			b.WriteString("\n")
			heading = ""
		}
	}
	const path = "../../docs/errors.md"
	if *update {
		testkit.Must(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != b.String() {
		t.Errorf("docs/errors.md is stale: go test ./schema/fault -update (%v)", err)
	}
}

// TestUsed checks that every id is used outside the catalogue and tests.
func TestUsed(t *testing.T) {
	t.Parallel()
	names := make(map[string]bool) // constant name of each id: whether it is used
	each(t, "ids.go", func(n ast.Node) {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "ID" {
				names[spec.Names[0].Name] = false
			}
		}
	})
	if len(names) != len(fault.Catalogue()) {
		t.Errorf("%d ids, %d in the catalogue: two are the same", len(names), len(fault.Catalogue()))
	}
	use := func(name string) {
		if _, ok := names[name]; ok {
			names[name] = true
		}
	}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "catalogue.go" || filepath.Base(path) == "ids.go" {
			return err
		}
		inside := filepath.Dir(path) == filepath.Join("..", "..", "schema", "fault")
		each(t, path, func(n ast.Node) {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if of, ok := n.X.(*ast.Ident); ok && of.Name == "fault" {
					use(n.Sel.Name)
				}
			case *ast.Ident:
				if inside {
					use(n.Name)
				}
			}
		})
		return nil
	})
	testkit.Must(t, err)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !names[name] {
			t.Errorf("nothing uses fault.%s", name)
		}
	}
}

// each calls f with every node of a Go file.
func each(t *testing.T, path string, f func(ast.Node)) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	testkit.Must(t, err)
	for n := range ast.Preorder(file) {
		f(n)
	}
}

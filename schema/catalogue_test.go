package schema_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestEachRowIsComplete checks the required fields of every row (MESSAGE 4.8, PROTOCOL 5).
func TestEachRowIsComplete(t *testing.T) {
	t.Parallel()
	rows := schema.Syscalls()
	if !slices.IsSortedFunc(rows, func(a, b *schema.Syscall) int { return strings.Compare(a.Type, b.Type) }) {
		t.Error("the table is not sorted")
	}
	for i, row := range rows {
		if i > 0 && rows[i-1].Type == row.Type {
			t.Errorf("%s is there twice", row.Type)
		}
		if !schema.ValidType(row.Type) || row.Domain == "" || len(row.Description) < 10 || !strings.HasSuffix(row.Description, ".") {
			t.Errorf("%s: domain %q, description %q", row.Type, row.Domain, row.Description)
		}
		if row.Kind != schema.KindCommand && row.Kind != schema.KindQuery {
			t.Errorf("%s is a %s", row.Type, row.Kind)
		}
		if found, ok := schema.Lookup(row.Type); !ok || found != row {
			t.Errorf("Lookup(%s) = %v, %t", row.Type, found, ok)
		}
		for _, alias := range row.Aliases {
			if other, ok := schema.Lookup(alias); !ok || other != row {
				t.Errorf("%s is another name of %s: %+v", alias, row.Type, other)
			}
		}
	}
	for _, typ := range []string{"", "Syscall", "syscall.ping", "Syscall.Ping ", "Rocket.Launch"} {
		if row, ok := schema.Lookup(typ); ok {
			t.Errorf("Lookup(%q) = %+v", typ, row)
		}
	}
}

func schemaOf(t *testing.T, typ *schema.Type) map[string]any {
	t.Helper()
	var s map[string]any
	testkit.Must(t, json.Unmarshal(typ.AppendJSONSchema(nil), &s))
	return s
}

// TestAppendDescription checks that the answer of Syscall.Describe for each row, in both dialects, matches its own
// schema (MESSAGE 4.8 #1 and #6, EVENT 4.8).
func TestAppendDescription(t *testing.T) {
	t.Parallel()
	describe, _ := schema.Lookup("Syscall.Describe")
	rows := schema.Syscalls()
	for _, row := range rows {
		for _, d := range dialects {
			want := map[string]any{
				"name": row.Type, in(d, "@kind"): row.Kind.String(), "description": row.Description,
				"input": schemaOf(t, row.Input()), "output": schemaOf(t, row.Output()),
			}
			text := row.Describe(d).AppendJSON(nil)
			var got map[string]any
			if err := json.Unmarshal(text, &got); err != nil || !schema.Valid(text) {
				t.Fatalf("%s: %v", text, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %v: %s", row.Type, d, diff)
			}
			if d != schema.OsMessage {
				continue
			}
			if _, err := describe.Output().Decode(text); err != nil {
				t.Errorf("%s: %v", row.Type, err)
			}
			line := schema.AppendReply(nil, &schema.Message{Type: "Syscall.Describe"}, text, stampOf(schema.Proof{}))
			if len(line) > schema.MaxLine {
				t.Errorf("%s: the answer has %d bytes, and a line %d", row.Type, len(line), schema.MaxLine)
			}
		}
	}
}

// TestEchoIsDescribedAsInTheSpec checks that the description of Syscall.Echo agrees with MESSAGE D #1, except for the texts.
func TestEchoIsDescribedAsInTheSpec(t *testing.T) {
	t.Parallel()
	row, _ := schema.Lookup("Syscall.Echo")
	text := func(name string) string {
		return fmt.Sprintf(`{"type":"object","properties":{"%s":{"type":"string"}},"required":["%[1]s"],"additionalProperties":false}`, name)
	}
	for name, typ := range map[string]*schema.Type{"message": row.Input(), "echo": row.Output()} {
		s := schemaOf(t, typ)
		delete(s["properties"].(map[string]any)[name].(map[string]any), "description")
		got, err := json.Marshal(s)
		testkit.Must(t, err)
		var a, b any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(text(name)), &b) != nil || !cmp.Equal(a, b) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if row.Kind != schema.KindCommand {
		t.Error("Echo is no command")
	}
}

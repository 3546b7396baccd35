package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestEncodeErrorOfEachClass checks the data of an error of each kind (MESSAGE 4.2.5 #3, MESSAGE 4.2.6 #1-#5, MESSAGE 4.7.2 #3-#4, EVENT
// 4.2.5 #3-#4, EVENT 4.7.2 #3 and #5-#6, EVENT 4.7.3).
func TestEncodeErrorOfEachClass(t *testing.T) {
	t.Parallel()
	for _, tc := range classes {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := &fault.Fault{Kind: tc.class, Message: "it went wrong", Field: "metadata.id"}
			for _, d := range dialects {
				want := map[string]any{"code": float64(tc.code), "message": "it went wrong"}
				if d == schema.OsEvent {
					want = map[string]any{"code": tc.word, "message": "it went wrong", "details": map[string]any{"field": "metadata.id"}}
				}
				if diff := cmp.Diff(want, errorData(t, d, e)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestEncodeErrorDetails checks that a schema violation always has details, in which an empty field is the whole message, and that
// other errors have details only if there are any (EVENT 4.6.2 #6).
func TestEncodeErrorDetails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		e    *fault.Fault
		want string
	}{
		"violation_of_the_whole": {&fault.Fault{Kind: fault.SchemaViolation, Message: "m"}, `{"message":"m","code":"SCHEMA_VIOLATION","details":{"field":""}}`},
		"nothing_to_say":         {&fault.Fault{Kind: fault.Internal, Message: "m"}, `{"message":"m","code":"INTERNAL_ERROR"}`},
		"field":                  {&fault.Fault{Kind: fault.InvalidInput, Message: "m", Field: `a."b"`}, `{"message":"m","code":"INVALID_INPUT","details":{"field":"a.\"b\""}}`},
		"cause":                  {&fault.Fault{Kind: fault.Upstream, Message: "m", Cause: fault.HTTPTimeout.New("c")}, `{"message":"m","code":"INTERNAL_ERROR","details":{"cause":{"message":"c","code":"TIMEOUT"}}}`},
		"field_and_cause": {
			&fault.Fault{Kind: fault.InvalidInput, Message: "m", Field: "f", Cause: fault.MemoryNotFound.New("c")},
			`{"message":"m","code":"INVALID_INPUT","details":{"field":"f","cause":{"message":"c","code":"NOT_FOUND"}}}`,
		},
	} {
		m := decode(t, string(schema.AppendError(nil, &schema.Message{Dialect: schema.OsEvent}, tc.e, stampOf(schema.Proof{}))), schema.OsEvent)
		if string(m.Data) != tc.want {
			t.Errorf("%s: %s, want %s", name, m.Data, tc.want)
		}
	}
}

// TestEncodeErrorApproval checks that only an answer that waits for an approval has the approval in its metadata (PROTOCOL 10).
func TestEncodeErrorApproval(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		for _, tc := range []struct {
			e    *fault.Fault
			want bool
		}{
			{fault.ApprovalPending.New("m").With("approval", "q-1"), true},
			{fault.MemoryNotFound.New("m").With("approval", "q-1"), false},
		} {
			line := string(schema.AppendError(nil, &schema.Message{Dialect: d}, tc.e, stampOf(schema.Proof{})))
			if got := strings.Contains(line[strings.Index(line, `"metadata"`):], `"approval":"q-1"`); got != tc.want {
				t.Errorf("%s: %s", d, line)
			}
		}
	}
}

// TestEncodeErrorCauses checks nested causes (MESSAGE 4.2.6 #3-#5, MESSAGE 4.7.2 #5).
func TestEncodeErrorCauses(t *testing.T) {
	t.Parallel()
	e := &fault.Fault{Kind: fault.Internal, Message: "seal", Cause: &fault.Fault{
		Kind: fault.Upstream, Message: "vault", Cause: &fault.Fault{Kind: fault.NotFound, Message: "no key"},
	}}
	want := `{"code":500,"message":"seal","cause":{"code":502,"message":"vault","cause":{"code":404,"message":"no key"}}}`
	if got := string(fault.AppendData(nil, e)); got != want {
		t.Errorf("OsMessage: %s", got)
	}
	errorData(t, schema.OsMessage, e)
	errorData(t, schema.OsEvent, e)

	deep := e
	for range 20 { // the deepest nesting in an OsEvent: each cause adds two levels
		deep = &fault.Fault{Kind: fault.Internal, Message: "again", Cause: deep}
	}
	errorData(t, schema.OsMessage, deep)
	errorData(t, schema.OsEvent, deep)
}

// errorData encodes e as an answer, checks the line, and returns its data.
func errorData(t *testing.T, d schema.Dialect, e *fault.Fault) map[string]any {
	t.Helper()
	line := schema.AppendError(nil, &schema.Message{Dialect: d, Kind: schema.KindQuery, Type: "Memory.Get"}, e, stampOf(schema.Proof{}))
	checkLine(t, line)
	m := decode(t, string(line), d)
	if m.Kind != schema.KindError || m.Type != "Memory.Get" {
		t.Errorf("%s is no error about Memory.Get", line)
	}
	var data map[string]any
	testkit.Must(t, json.Unmarshal(m.Data, &data))
	if _, ok := data["stack"]; ok || strings.Contains(string(line), "goroutine") {
		t.Errorf("the error has a stack: %s", line)
	}
	return data
}

// checkLine checks that line is one frame: strict JSON, one '\n', at the end (BRIDGE 4.2.2 #4, MESSAGE 4.3.1, EVENT 4.3.1).
func checkLine(t rapid.TB, line []byte) {
	t.Helper()
	text, ok := strings.CutSuffix(string(line), "\n")
	if !ok || strings.Contains(text, "\n") || !schema.Valid([]byte(text)) {
		t.Errorf("not one line of strict JSON: %q", line)
	}
}

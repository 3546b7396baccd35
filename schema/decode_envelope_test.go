package schema_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// secret is a value that no error message may repeat (MESSAGE 8.2 #2, EVENT 8.2 #2-#3).
const secret = "hunter2"

// envelopeFault is a frame of valid JSON that is not a valid message. Words with @ are those of `in`.
type envelopeFault struct {
	name    string
	frame   string
	field   string
	message string // after "Schema validation failed: "
	typ     string // type that an answer can repeat
	id      string
}

const (
	wantKind = "@kind must be one of command, query, event, @reply, error"
	wantType = "@type must be a string of the form Domain.Action, such as Memory.Set"
)

// envelopeFaults returns frames with an invalid envelope (BRIDGE 4.2.1 #2-#5, MESSAGE 4.1.1 and 4.6.1, EVENT 4.1.1 and 4.6.1, MESSAGE 9.2
// #1, EVENT 9.2 #1).
func envelopeFaults() []envelopeFault {
	kind := func(name, value string) envelopeFault {
		return envelopeFault{
			name: "kind_" + name, frame: `{"@kind":` + value + `,"@type":"Memory.Get","@data":{},"metadata":` + metadata + `}`,
			field: "@kind", message: wantKind, typ: "Memory.Get", id: "m-1",
		}
	}
	typ := func(name, value string) envelopeFault {
		return envelopeFault{
			name: "type_" + name, frame: `{"@kind":"query","@type":` + value + `,"@data":{},"metadata":` + metadata + `}`,
			field: "@type", message: wantType, id: "m-1",
		}
	}
	return []envelopeFault{
		{
			name: "kind_missing", frame: `{"@type":"Memory.Get","@data":{},"metadata":` + metadata + `}`,
			field: "@kind", message: "missing required field: @kind", typ: "Memory.Get", id: "m-1",
		},
		kind("unknown", `"`+secret+`"`), kind("empty", `""`), kind("capital", `"Query"`), kind("space", `"query "`), kind("cut", `"quer"`),
		kind("null", `null`), kind("number", `2`), kind("true", `true`), kind("array", `["query"]`), kind("object", `{"query":1}`),
		{
			name: "type_missing", frame: `{"@kind":"query","@data":{},"metadata":` + metadata + `}`,
			field: "@type", message: "missing required field: @type", id: "m-1",
		},
		typ("empty", `""`), typ("lower_case", `"`+secret+`.get"`), typ("action_lower_case", `"Memory.get"`), typ("no_dot", `"MemoryGet"`),
		typ("two_dots", `"Memory.Get.All"`), typ("no_domain", `".Get"`), typ("no_action", `"Memory."`), typ("dot_only", `"."`),
		typ("digit_first", `"1Memory.Get"`), typ("action_digit_first", `"Memory.1Get"`), typ("newline_at_end", `"Memory.Get\n"`),
		typ("space", `"Memory. Get"`), typ("dash", `"Memory-X.Get"`), typ("underscore", `"Memory.Get_all"`), typ("not_ascii", `"Mémory.Get"`),
		typ("not_ascii_capital", `"Ärger.Get"`), typ("nul", `"Memory.Get\u0000"`), typ("null", `null`), typ("number", `1.5`),
		typ("array", `["Memory.Get"]`), typ("object", `{}`), typ("false", `false`),
		{
			name: "data_missing", frame: `{"@kind":"query","@type":"Memory.Get","metadata":` + metadata + `}`,
			field: "@data", message: "missing required field: @data (it may be null)", typ: "Memory.Get", id: "m-1",
		},
		{
			name: "data_misspelt", frame: `{"@kind":"query","@type":"Memory.Get","Data":{},"dAta":1,"Payload":1,"metadata":` + metadata + `}`,
			field: "@data", message: "missing required field: @data (it may be null)", typ: "Memory.Get", id: "m-1",
		},
		{name: "nothing", frame: `{}`, field: "@kind", message: "missing required field: @kind"},
		{name: "kind_before_type", frame: `{"@data":1,"@type":1,"@kind":1}`, field: "@kind", message: wantKind},
		{name: "type_before_data", frame: `{"metadata":0,"@type":1,"@kind":"event"}`, field: "@type", message: wantType},
		{
			name: "data_before_metadata", frame: `{"metadata":{"id":"m-2"},"@type":"A.B","@kind":"event"}`,
			field: "@data", message: "missing required field: @data (it may be null)", typ: "A.B", id: "m-2",
		},
	}
}

// TestDecodeEnvelopeFaults checks that the fault is 422 and SCHEMA_VIOLATION with the member, and that the Message has the members
// that could be read (MESSAGE 4.3.3 #3, MESSAGE 4.6.2, EVENT 4.3.3 #3, EVENT 4.6.2, EVENT 4.7.3).
func TestDecodeEnvelopeFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range append(envelopeFaults(), metadataFaults()...) {
		eachDialect(t, tc.name, func(t *testing.T, d schema.Dialect) {
			m, err := schema.Decode([]byte(in(d, tc.frame)), d)
			if err == nil {
				t.Fatalf("decoded as %+v", m)
			}
			if err.Kind != fault.SchemaViolation || err.Code() != 422 || err.EventCode() != "SCHEMA_VIOLATION" {
				t.Errorf("class %d, codes %d and %s", err.Kind, err.Code(), err.EventCode())
			}
			if want := "Schema validation failed: " + in(d, tc.message); err.Message != want {
				t.Errorf("message %q, want %q", err.Message, want)
			}
			if err.Field != in(d, tc.field) {
				t.Errorf("field %q, want %q", err.Field, in(d, tc.field))
			}
			if strings.Contains(err.Message+err.Field, secret) {
				t.Errorf("repeats the value: %s", err.Message)
			}
			if m.Dialect != d || m.Type != tc.typ || m.Meta.ID != tc.id {
				t.Errorf("the message has %v, type %q, id %q; want %v, %q, %q", m.Dialect, m.Type, m.Meta.ID, d, tc.typ, tc.id)
			}
			if strings.Contains(tc.frame, metadata) && m.Meta.Correlation != "flow-1" {
				t.Errorf("lost the correlation: %+v", m.Meta)
			}
		})
	}
}

// TestDecodeRefusesWhatIsNoObject checks that valid JSON that is not an object is refused without a member (BRIDGE 4.2.2 #2).
func TestDecodeRefusesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, frame := range []string{`[]`, ` [1]`, `null`, `true`, `"kind"`, `1`, "\t\"x\"\r", `[{"kind":"query"}]`} {
		for _, d := range dialects {
			m, err := schema.Decode([]byte(frame), d)
			if err == nil || err.Kind != fault.SchemaViolation || err.Field != "" ||
				err.Message != "Schema validation failed: the message must be a JSON object" {
				t.Errorf("Decode(%q) = %+v, %v", frame, m, err)
			}
		}
	}
}

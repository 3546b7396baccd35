package schema_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestRequestRefuses checks the faults of well-formed frames (BRIDGE 4.6.2, MESSAGE 8.5 #2, MESSAGE C #3-#4, EVENT 4.7.3). Member
// names are those of `in`.
func TestRequestRefuses(t *testing.T) {
	t.Parallel()
	const unknown = ": register a handler and retry (Syscall.List names what there is)"
	for _, tc := range []struct {
		name, kind, typ, data string
		class                 fault.Kind
		field, message        string
	}{
		{"stray_reply", "@reply", "Syscall.Ping", `{}`, fault.SchemaViolation, "@kind", "Schema validation failed: a client may send command, query or event, not @reply"},
		{"stray_error", "error", "Syscall.Ping", `{}`, fault.SchemaViolation, "@kind", "Schema validation failed: a client may send command, query or event, not error"},
		{"unknown", "command", "Nobody.Home", `{}`, fault.UnknownSyscall, "", "Unsupported @type Nobody.Home" + unknown},
		{"unknown_query", "query", "Rocket.Launch", `null`, fault.UnknownSyscall, "", "Unsupported @type Rocket.Launch" + unknown},
		{"unknown_case", "query", "Syscall.PING", `{}`, fault.UnknownSyscall, "", "no syscall Syscall.PING; did you mean Syscall.Ping? Otherwise register a handler and retry (Syscall.List names what there is)"},
		{"kernels_own", "command", "Resource.Free", `{"pids":[1]}`, fault.UnknownSyscall, "", "Unsupported @type Resource.Free" + unknown},
		{"query_as_command", "command", "Syscall.Ping", `{"payload":1}`, fault.SchemaViolation, "@kind", "Schema validation failed: Syscall.Ping is a query, not a command"},
		{"command_as_query", "query", "Syscall.Echo", `{"message":""}`, fault.SchemaViolation, "@kind", "Schema validation failed: Syscall.Echo is a command, not a query"},
		{"kind_before_data", "query", "Syscall.Echo", `{"message":1}`, fault.SchemaViolation, "@kind", "Schema validation failed: Syscall.Echo is a command, not a query"},
		{"data_missing_member", "query", "Syscall.Ping", `{}`, fault.InvalidInput, "payload", "Invalid input: payload is missing"},
		{"data_null", "query", "Syscall.Ping", `null`, fault.InvalidInput, "payload", "Invalid input: payload is missing"},
		{"data_wrong_kind", "command", "Syscall.Echo", `{"message":7}`, fault.InvalidInput, "message", "Invalid input: message must be a string"},
		{"data_no_object", "command", "Syscall.Echo", `["` + secret + `"]`, fault.InvalidInput, "data", "Invalid input: data must be an object"},
		{"data_string", "command", "Syscall.Echo", `"` + secret + `"`, fault.InvalidInput, "data", "Invalid input: data must be an object"},
		{
			"data_unknown_member", "command", "Syscall.Echo", `{"message":"","Message":"` + secret + `"}`,
			fault.InvalidInput, "Message", "Invalid input: Message is not a member of this syscall's data: it takes message",
		},
		{"data_takes_none", "query", "Clock.Get", `{"all":true}`, fault.InvalidInput, "all", "Invalid input: all is not a member of this syscall's data: it takes none"},
		{"data_empty", "query", "Syscall.Describe", `{"name":""}`, fault.InvalidInput, "name", "Invalid input: name must not be empty"},
	} {
		eachDialect(t, tc.name, func(t *testing.T, d schema.Dialect) {
			m := decode(t, in(d, `{"@kind":"`+tc.kind+`","@type":"`+tc.typ+`","@data":`)+tc.data+`,"metadata":`+metadata+`}`, d)
			row, data, err := m.Request()
			if err == nil || row != nil || data != nil {
				t.Fatalf("row %v, data %v, error %v", row, data, err)
			}
			if err.Kind != tc.class || err.Field != in(d, tc.field) || err.Message != in(d, tc.message) {
				t.Errorf("class %d at %q: %s\nwant  %d at %q: %s", err.Kind, err.Field, err.Message, tc.class, in(d, tc.field), in(d, tc.message))
			}
			if strings.Contains(err.Message, secret) {
				t.Errorf("repeats the value: %s", err.Message)
			}
		})
	}
}

func TestRequestDecodesData(t *testing.T) {
	t.Parallel()
	eachDialect(t, "ping", func(t *testing.T, d schema.Dialect) {
		m := decode(t, ping(d, `{ "payload" : [ 1e400 , -0 ] }`), d)
		row, data, err := m.Request()
		if err != nil || row.Type != "Syscall.Ping" || row.Domain != schema.Kernel {
			t.Fatalf("row %+v, error %v", row, err)
		}
		if got := string(data.(*schema.PingInput).Payload); got != `[ 1e400 , -0 ]` {
			t.Errorf("payload %s", got)
		}
	})
	eachDialect(t, "echo", func(t *testing.T, d schema.Dialect) {
		m := decode(t, in(d, `{"@kind":"command","@type":"Syscall.Echo","@data":{"m\u0065ssage":"\u0000\ud83d\ude00"},"metadata":`)+metadata+`}`, d)
		_, data, err := m.Request()
		if err != nil || data.(*schema.EchoInput).Message != "\x00\U0001f600" {
			t.Errorf("data %+v, error %v", data, err)
		}
	})
	eachDialect(t, "null_is_an_empty_object", func(t *testing.T, d schema.Dialect) {
		m := decode(t, in(d, `{"@kind":"query","@type":"Syscall.List","@data":null,"metadata":`)+metadata+`}`, d)
		if _, _, err := m.Request(); err != nil {
			t.Error(err)
		}
	})
}

// TestRequestFaultsAreShort checks that a fault about a name or a member of any length fits a line (MESSAGE 4.3.2 #1).
func TestRequestFaultsAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Zz", 4000)
	for _, frame := range []string{
		`{"kind":"query","type":"Nobody.` + long + `","data":{},"metadata":` + metadata + `}`,
		ping(schema.OsMessage, `{"payload":1,"`+long+`":2}`),
	} {
		m := decode(t, frame, schema.OsMessage)
		_, _, err := m.Request()
		if err == nil || len(err.Message)+len(err.Field) > 1000 || !strings.Contains(err.Message, "…") {
			t.Errorf("%v", err)
		}
	}
}

// TestRequestOfAnotherType checks that Request uses the present type of a message, not the decoded one.
func TestRequestOfAnotherType(t *testing.T) {
	t.Parallel()
	m, err := schema.Decode([]byte(`{"kind":"query","type":"Memory.Get","data":{"key":"a"},"metadata":{"id":"1","timestamp":1}}`), schema.OsMessage)
	if err != nil {
		t.Fatal(err)
	}
	m.Type = schema.MemoryList.Type
	m.Data = []byte(`{}`)
	if row, _, err := m.Request(); err != nil || row != schema.MemoryList.Syscall {
		t.Errorf("row %v, error %v", row, err)
	}
}

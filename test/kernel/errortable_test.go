package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// row is a row of PROTOCOL 3's table: a frame in each dialect, and the error that answers it.
type row struct {
	name      string
	message   string // OsMessage frame
	code      int    // its error's code
	text      string // what its error's message holds
	event     string // OsEvent frame
	word      string // its error's code
	typ       string // type of both answers
	field     string // details.field of the OsEvent error
	causeless bool   // the id could not be read
}

const (
	meta = `"metadata":{"id":"bad-1","timestamp":7}`
	late = `"metadata":{"id":"bad-1","timestamp":9007199254740992}`
	own  = "Validation.Failed"
)

func rows() []row {
	big := strings.Repeat("x", schema.MaxEventLine)
	return []row{
		{
			name: "not JSON", message: `{"kind":"query",`, code: 400, text: "Invalid JSON: ",
			event: `{"type":"query","name":"A.B",`, word: "INVALID_JSON", typ: own, causeless: true,
		},
		{
			name:    "duplicate names",
			message: `{"kind":"query","type":"Syscall.Ping","data":{"payload":1,"payload":2},` + meta + `}`, code: 400, text: "Invalid JSON: ",
			event: `{"type":"query","name":"Syscall.Ping","payload":{"payload":1},"payload":null,` + meta + `}`, word: "INVALID_JSON", typ: own, causeless: true,
		},
		{
			name:    "bad UTF-8",
			message: "{\"kind\":\"query\",\"type\":\"Syscall.Ping\",\"data\":\"\xff\"," + meta + "}", code: 400, text: "Invalid JSON: ",
			event: "{\"type\":\"query\",\"name\":\"Syscall.Ping\",\"payload\":\"\xc0\x80\"," + meta + "}", word: "INVALID_JSON", typ: own, causeless: true,
		},
		{
			name:    "too deep",
			message: `{"kind":"query","type":"Syscall.Ping","data":` + nest(schema.MaxDepth) + `,` + meta + `}`, code: 400, text: "nested deeper than 64 levels",
			event: `{"type":"query","name":"Syscall.Ping","payload":` + nest(schema.MaxDepth) + `,` + meta + `}`, word: "INVALID_JSON", typ: own, causeless: true,
		},
		{
			name:    "no kind of message",
			message: `{"kind":"order","type":"Syscall.Ping","data":null,` + meta + `}`, code: 422, text: "Schema validation failed: ",
			event: `{"type":"order","name":"Syscall.Ping","payload":null,` + meta + `}`, word: "SCHEMA_VIOLATION", typ: "Syscall.Ping", field: "type",
		},
		{
			name:    "bad name",
			message: `{"kind":"query","type":"syscall.ping","data":null,` + meta + `}`, code: 422, text: "Schema validation failed: ",
			event: `{"type":"query","name":"SyscallPing","payload":null,` + meta + `}`, word: "SCHEMA_VIOLATION", typ: own, field: "name",
		},
		{
			name:    "no data",
			message: `{"kind":"query","type":"Syscall.Ping",` + meta + `}`, code: 422, text: "Schema validation failed: ",
			event: `{"type":"query","name":"Syscall.Ping",` + meta + `}`, word: "SCHEMA_VIOLATION", typ: "Syscall.Ping", field: "payload",
		},
		{
			name:    "timestamp beyond 2^53-1",
			message: `{"kind":"query","type":"Syscall.Ping","data":{"payload":1},` + late + `}`, code: 422, text: "Schema validation failed: metadata.timestamp must be",
			event: `{"type":"query","name":"Syscall.Ping","payload":{"payload":1},` + late + `}`, word: "SCHEMA_VIOLATION", typ: "Syscall.Ping", field: "metadata.timestamp",
		},
		{
			name:    "stray reply",
			message: `{"kind":"reply","type":"Syscall.Ping","data":{},` + meta + `}`, code: 422, text: "Schema validation failed: ",
			event: `{"type":"response","name":"Syscall.Ping","payload":{},` + meta + `}`, word: "SCHEMA_VIOLATION", typ: "Syscall.Ping", field: "type",
		},
		{
			name:    "stray error",
			message: `{"kind":"error","type":"Syscall.Ping","data":{"code":500,"message":"x"},` + meta + `}`, code: 422, text: "Schema validation failed: ",
			event: `{"type":"error","name":"Syscall.Ping","payload":{},` + meta + `}`, word: "SCHEMA_VIOLATION", typ: "Syscall.Ping", field: "type",
		},
		{
			name:    "query as command",
			message: `{"kind":"command","type":"Syscall.Ping","data":{"payload":1},` + meta + `}`, code: 422, text: "Syscall.Ping is a query",
			event: `{"type":"command","name":"Syscall.Ping","payload":{"payload":1},` + meta + `}`, word: "SCHEMA_VIOLATION", typ: "Syscall.Ping", field: "type",
		},
		{
			name:    "command as query",
			message: `{"kind":"query","type":"Syscall.Shutdown","data":{},` + meta + `}`, code: 422, text: "Syscall.Shutdown is a command",
			event: `{"type":"query","name":"Syscall.Shutdown","payload":{},` + meta + `}`, word: "SCHEMA_VIOLATION", typ: "Syscall.Shutdown", field: "type",
		},
		{
			name:    "line too long",
			message: big + "x", code: 413, text: "Message exceeds maximum line length of ",
			event: big + "x", word: "LINE_TOO_LONG", typ: own, causeless: true,
		},
		{
			name:    "no such syscall",
			message: `{"kind":"command","type":"Rocket.Launch","data":{},` + meta + `}`, code: 404, text: "Rocket.Launch: register a handler and retry",
			event: `{"type":"command","name":"Rocket.Launch","payload":{},` + meta + `}`, word: "NOT_FOUND", typ: "Rocket.Launch",
		},
		{
			name:    "data does not fit",
			message: `{"kind":"command","type":"Syscall.Echo","data":{"message":7},` + meta + `}`, code: 422, text: "message must be a string",
			event: `{"type":"command","name":"Syscall.Echo","payload":{"message":7},` + meta + `}`, word: "INVALID_INPUT", typ: "Syscall.Echo", field: "message",
		},
		{
			name:    "unknown member of data",
			message: `{"kind":"command","type":"Syscall.Echo","data":{"message":"m","x":1},` + meta + `}`, code: 422, text: "x is not a member",
			event: `{"type":"command","name":"Syscall.Echo","payload":{"message":"m","x":1},` + meta + `}`, word: "INVALID_INPUT", typ: "Syscall.Echo", field: "x",
		},
		{
			name:    "not there",
			message: `{"kind":"query","type":"Syscall.Describe","data":{"name":"No.Such"},` + meta + `}`, code: 404, text: `"No.Such"`,
			event: `{"type":"query","name":"Sys.Describe","payload":{"name":"No.Such"},` + meta + `}`, word: "NOT_FOUND", typ: "",
		},
	}
}

// nest returns text that opens n arrays.
func nest(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// TestErrorTable sends each faulty frame in both dialects over both sockets. It checks that exactly one error comes back, in
// the frame's own dialect if it has one, and that the connection stays open.
func TestErrorTable(t *testing.T) {
	t.Parallel()
	d := start(t)
	for socket, fallback := range d.sockets() {
		c := d.wire(t, socket)
		for _, r := range rows() {
			for _, dialect := range []schema.Dialect{schema.OsMessage, schema.OsEvent} {
				frame := r.message
				if dialect == schema.OsEvent {
					frame = r.event
				}
				c.send(frame + "\n" + ping("after", "1"))
				got := c.next()
				name := fmt.Sprintf("%s, %s over %s", r.name, dialect, socket)
				if r.causeless {
					dialect = fallback // nothing of the frame could be read
				}
				r.check(t, name, dialect, got)
				if m := c.next(); m.Kind != schema.KindReply || m.Meta.Causation != "after" {
					t.Fatalf("%s: the ping after it got %s %s", name, m.Kind, m.Data)
				}
			}
		}
	}
}

func (r *row) check(t *testing.T, name string, dialect schema.Dialect, m schema.Message) {
	t.Helper()
	if m.Kind != schema.KindError || m.Dialect != dialect {
		t.Errorf("%s: got %s %s, want an error in %s", name, m.Dialect, m.Kind, dialect)
		return
	}
	if r.typ != "" && m.Type != r.typ {
		t.Errorf("%s: type %s, want %s", name, m.Type, r.typ)
	}
	if cause := m.Meta.Causation; (cause == "bad-1") == r.causeless {
		t.Errorf("%s: causation %q", name, cause)
	}
	data := string(m.Data)
	if dialect == schema.OsEvent {
		if !strings.Contains(data, `"code":"`+r.word+`"`) {
			t.Errorf("%s: %s, want the code %s", name, data, r.word)
		}
		if field := `"details":{"field":"` + r.field + `"}`; r.field != "" && !strings.Contains(data, field) {
			t.Errorf("%s: %s, want %s", name, data, field)
		}
		return
	}
	if !strings.HasPrefix(data, fmt.Sprintf(`{"code":%d,"message":"`, r.code)) || !strings.Contains(strings.ReplaceAll(data, `\"`, `"`), r.text) {
		t.Errorf("%s: %s, want code %d and %q", name, data, r.code, r.text)
	}
}

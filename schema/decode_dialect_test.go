package schema_test

import (
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestDecodeTellsDialectsApart checks that `kind` makes a frame an OsMessage, else `name` an OsEvent, and that any other frame has the
// dialect of its socket, which is also the dialect of the error (BRIDGE 3 #7, BRIDGE 4.2.1 #1, PROTOCOL 3).
func TestDecodeTellsDialectsApart(t *testing.T) {
	t.Parallel()
	const message, event = schema.OsMessage, schema.OsEvent
	for _, tc := range []struct {
		name      string
		frame     string
		want      [2]schema.Dialect // for the fallbacks OsMessage and OsEvent
		wantField [2]string         // invalid member; empty: the frame is valid
	}{
		{"message", ping(message, `1`), [2]schema.Dialect{message, message}, [2]string{}},
		{"event", ping(event, `1`), [2]schema.Dialect{event, event}, [2]string{}},
		{
			"both_kind_wins", `{"name":"A.B","payload":2,"kind":"query","type":"Syscall.Ping","data":1,"metadata":` + metadata + `}`,
			[2]schema.Dialect{message, message},
			[2]string{},
		},
		{
			"both_kind_wins_and_is_wrong", `{"kind":7,"name":"Syscall.Ping","type":"query","payload":1}`,
			[2]schema.Dialect{message, message},
			[2]string{"kind", "kind"},
		},
		{"kind_null_counts", `{"kind":null,"name":"A.B"}`, [2]schema.Dialect{message, message}, [2]string{"kind", "kind"}},
		{"name_null_counts", `{"name":null}`, [2]schema.Dialect{event, event}, [2]string{"type", "type"}},
		{"neither", `{"type":"query","payload":1}`, [2]schema.Dialect{message, event}, [2]string{"kind", "name"}},
		{"neither_empty", `{}`, [2]schema.Dialect{message, event}, [2]string{"kind", "type"}},
		{"names_are_case_sensitive", `{"Kind":"query","KIND":"query","Name":"A.B"}`, [2]schema.Dialect{message, event}, [2]string{"kind", "type"}},
		{"nested_kind_does_not_count", `{"name":"A.B","type":"query","payload":{"kind":"query"}}`, [2]schema.Dialect{event, event}, [2]string{}},
		{
			"escaped_kind_counts", `{"k\u0069nd":"query","\u0074ype":"Syscall.Ping","d\u0061ta":1,"metad\u0061ta":` + metadata + `}`,
			[2]schema.Dialect{message, message},
			[2]string{},
		},
		{"escaped_name_counts", `{"n\u0061me":"A.B","type":"query","payl\u006fad":1}`, [2]schema.Dialect{event, event}, [2]string{}},
	} {
		for i, fallback := range dialects {
			t.Run(tc.name+"/"+fallback.String(), func(t *testing.T) {
				t.Parallel()
				m, err := schema.Decode([]byte(tc.frame), fallback)
				if m.Dialect != tc.want[i] {
					t.Errorf("dialect %v, want %v", m.Dialect, tc.want[i])
				}
				switch {
				case err == nil && tc.wantField[i] != "":
					t.Errorf("decoded, want a fault at %s", tc.wantField[i])
				case err != nil && err.Field != tc.wantField[i]:
					t.Errorf("fault %v at %q, want %q", err, err.Field, tc.wantField[i])
				}
			})
		}
	}
}

// TestDecodeFallsBackForWhatIsNoObject checks that a frame that is not an object has the dialect of its socket (PROTOCOL 3).
func TestDecodeFallsBackForWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, frame := range []string{``, `{`, `"kind"`, `[{"kind":"query"}]`, `{"kind":"query","kind":"query"}`, `{"name":"A.B"`} {
		for _, fallback := range dialects {
			m, err := schema.Decode([]byte(frame), fallback)
			if err == nil || m.Dialect != fallback {
				t.Errorf("Decode(%q, %v): dialect %v, error %v", frame, fallback, m.Dialect, err)
			}
			if m.Type != "" || m.Meta.ID != "" || m.Kind != 0 || m.Data != nil {
				t.Errorf("Decode(%q, %v) read %+v from what cannot be read", frame, fallback, m)
			}
		}
	}
}

// TestDecodeKinds checks the words of the five kinds in each dialect (BRIDGE 4.2.1 #2, MESSAGE 4.1.1 #1, EVENT 4.1.1 #1).
func TestDecodeKinds(t *testing.T) {
	t.Parallel()
	words := map[schema.Dialect]map[string]schema.Kind{
		schema.OsMessage: {
			"command": schema.KindCommand, "query": schema.KindQuery, "event": schema.KindEvent, "reply": schema.KindReply, "error": schema.KindError,
		},
		schema.OsEvent: {
			"command": schema.KindCommand, "query": schema.KindQuery, "event": schema.KindEvent, "response": schema.KindReply, "error": schema.KindError,
		},
	}
	for d, kinds := range words {
		for word, kind := range kinds {
			for _, written := range []string{word, `\u00` + hex(word[0]) + word[1:]} {
				m := decode(t, in(d, `{"@kind":"`+written+`","@type":"A.B","@data":null,"metadata":`+metadata+`}`), d)
				if m.Kind != kind {
					t.Errorf("%v %s: kind %v, want %v", d, written, m.Kind, kind)
				}
			}
		}
	}
	if got := schema.KindReply.String() + schema.KindError.String() + schema.Kind(0).String() + schema.Kind(9).String(); got != "replyerror" {
		t.Errorf("names of kinds: %s", got)
	}
}

// hex returns two hexadecimal digits.
func hex(c byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[c>>4], digits[c&15]})
}

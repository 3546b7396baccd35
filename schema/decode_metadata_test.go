package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/schema"
)

// metadataFaults returns frames with invalid metadata (BRIDGE 4.2.1 #5-#9, MESSAGE 4.1.1 #4, MESSAGE 4.1.2, MESSAGE 4.6.1 #2-#3, and
// the same of EVENT). OsEvent may omit the object; if present, it is checked the same way.
func metadataFaults() []envelopeFault {
	const (
		head     = `{"@kind":"command","@type":"Memory.Set","@data":{},"metadata":`
		wantTime = "metadata.timestamp must be a non-negative integer of at most 9007199254740991: milliseconds since 1970"
	)
	whole := func(name, value string) envelopeFault {
		return envelopeFault{name: "metadata_" + name, frame: head + value + `}`, field: "metadata", message: "metadata must be an object", typ: "Memory.Set"}
	}
	id := func(name, value string) envelopeFault {
		return envelopeFault{
			name: "id_" + name, frame: head + `{"id":` + value + `,"timestamp":1}}`,
			field: "metadata.id", message: "metadata.id must be a non-empty string", typ: "Memory.Set",
		}
	}
	timestamp := func(name, value string) envelopeFault {
		return envelopeFault{
			name: "timestamp_" + name, frame: head + `{"id":"m-1","timestamp":` + value + `,"correlation":"flow-1"}}`,
			field: "metadata.timestamp", message: wantTime, typ: "Memory.Set", id: "m-1",
		}
	}
	list := []envelopeFault{
		whole("null", `null`), whole("string", `"`+secret+`"`), whole("array", `[{"id":"m-1","timestamp":1}]`), whole("number", `1`), whole("true", `true`),
		{name: "id_missing", frame: head + `{"timestamp":1}}`, field: "metadata.id", message: "missing required field: metadata.id", typ: "Memory.Set"},
		{name: "id_misspelt", frame: head + `{"ID":"m-1","timestamp":1}}`, field: "metadata.id", message: "missing required field: metadata.id", typ: "Memory.Set"},
		id("empty", `""`), id("null", `null`), id("number", `7`), id("array", `["`+secret+`"]`), id("false", `false`),
		{
			name: "timestamp_missing", frame: head + `{"id":"m-1"}}`,
			field: "metadata.timestamp", message: "missing required field: metadata.timestamp", typ: "Memory.Set", id: "m-1",
		},
		timestamp("negative", `-1`), timestamp("fraction", `1.5`), timestamp("small_fraction", `1e-1`), timestamp("string", `"1"`),
		timestamp("empty_string", `""`), timestamp("null", `null`), timestamp("true", `true`), timestamp("array", `[1]`), timestamp("object", `{}`),
		timestamp("beyond_int64", `9223372036854775808`), timestamp("huge", `1e400`), timestamp("hostile", `1e1000000000`),
		timestamp("hostile_small", `1e-1000000000`), timestamp("beyond_every_int", `1e99999999999999999999`), timestamp("below_zero_a_little", `-1e-400`),
		{name: "metadata_empty", frame: head + `{}}`, field: "metadata.id", message: "missing required field: metadata.id", typ: "Memory.Set"},
		{name: "first_fault_wins", frame: head + `{"timestamp":-1,"id":""}}`, field: "metadata.timestamp", message: wantTime, typ: "Memory.Set"},
	}
	for _, member := range []string{"correlation", "causation", "idempotencyKey"} {
		for name, value := range map[string]string{"empty": `""`, "number": `5`, "array": `["` + secret + `"]`, "object": `{}`, "true": `true`, "null": `null`} {
			if member == "causation" && name == "null" {
				continue // null is valid for a message without a parent
			}
			list = append(list, envelopeFault{
				name: member + "_" + name, frame: head + `{"` + member + `":` + value + `,"timestamp":1,"id":"m-1"}}`,
				field: "metadata." + member, message: "metadata." + member + " must be a non-empty string", typ: "Memory.Set", id: "m-1",
			})
		}
	}
	return list
}

// TestDecodeMetadata checks the members of metadata, of which unknown ones are ignored (MESSAGE 4.1.2, EVENT 4.1.2).
func TestDecodeMetadata(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, object string
		want         schema.Metadata
	}{
		{"least", `{"id":"x","timestamp":0}`, schema.Metadata{ID: "x"}},
		{
			"all", `{"idempotencyKey":"k","causation":"p","correlation":"c","timestamp":1735000000000,"id":"x"}`,
			schema.Metadata{ID: "x", Timestamp: 1735000000000, Correlation: "c", Causation: "p", IdempotencyKey: "k"},
		},
		{"causation_null", `{"id":"x","timestamp":1,"causation":null}`, schema.Metadata{ID: "x", Timestamp: 1}},
		{"unknown_members", `{"id":"x","timestamp":1,"Id":7,"ttl":[{}],"kernel":null,"":0}`, schema.Metadata{ID: "x", Timestamp: 1}},
		{"white_space", "{\t\"id\" :\r \"x\" , \"timestamp\"\t: 1 }", schema.Metadata{ID: "x", Timestamp: 1}},
		{"escapes", `{"\u0069d":"\u0000\"\ud83d\ude00","timestamp":1}`, schema.Metadata{ID: "\x00\"\U0001f600", Timestamp: 1}},
		{"long_id", `{"id":"0123456789abcdef0123456789abcdef0123456789\\","timestamp":1}`, schema.Metadata{ID: `0123456789abcdef0123456789abcdef0123456789\`, Timestamp: 1}},
		{"minus_zero", `{"id":"x","timestamp":-0}`, schema.Metadata{ID: "x"}},
		{"integer_with_fraction", `{"id":"x","timestamp":1.0}`, schema.Metadata{ID: "x", Timestamp: 1}},
		{"integer_with_exponent", `{"id":"x","timestamp":1e3}`, schema.Metadata{ID: "x", Timestamp: 1000}},
		{"integer_with_both", `{"id":"x","timestamp":1735.000000000E+9}`, schema.Metadata{ID: "x", Timestamp: 1735000000000}},
		{"zero_with_hostile_exponent", `{"id":"x","timestamp":0e1000000000}`, schema.Metadata{ID: "x"}},
		{"largest", `{"id":"x","timestamp":9223372036854775807}`, schema.Metadata{ID: "x", Timestamp: 1<<63 - 1}},
	} {
		eachDialect(t, tc.name, func(t *testing.T, d schema.Dialect) {
			m := decode(t, in(d, `{"@kind":"command","@type":"A.B","@data":null,"metadata":`)+tc.object+`}`, d)
			want := tc.want // both dialects share tc
			want.Present = true
			if diff := cmp.Diff(want, m.Meta); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDecodeWithoutMetadata checks that OsMessage requires the object, and OsEvent does not (BRIDGE 4.2.1 #5, MESSAGE 4.1.1 #4). The
// answer to an open prologue is decoded, so that the kernel can accept it (PROTOCOL 4).
func TestDecodeWithoutMetadata(t *testing.T) {
	t.Parallel()
	m := decode(t, `{"type":"query","name":"Syscall.Ping","payload":1}`, schema.OsMessage)
	if m.Meta != (schema.Metadata{}) {
		t.Errorf("OsEvent metadata: %+v", m.Meta)
	}
	m, err := schema.Decode([]byte(`{"kind":"reply","type":"Syscall.Authenticate","data":{"x":1}}`), schema.OsMessage)
	if err == nil || err.Field != "metadata" || err.Message != "Schema validation failed: missing required field: metadata" {
		t.Fatalf("error %v", err)
	}
	if m.Kind != schema.KindReply || m.Type != "Syscall.Authenticate" || string(m.Data) != `{"x":1}` {
		t.Errorf("read %+v", m)
	}
}

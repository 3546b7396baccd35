package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestDecodeSyntaxFaults checks that JSON that is not strict is 400 or INVALID_JSON with the reason (MESSAGE 4.3.3 #2, MESSAGE C #1,
// EVENT 4.3.3 #2, BRIDGE 4.2.2 #2-#3, BRIDGE 4.6.1 #1).
func TestDecodeSyntaxFaults(t *testing.T) {
	t.Parallel()
	good := ping(schema.OsMessage, `{"a":{"b":[0,{"c":1}]}}`)
	swap := func(old, replacement string) string { return strings.Replace(good, old, replacement, 1) }
	for _, tc := range []struct{ name, line, message string }{
		{"empty", "", "empty line"},
		{"blank", " \t\r", "empty line"},
		{"no_break_space", "\u00a0", "invalid character"},
		{"not_json", "GET / HTTP/1.1", "invalid character 'G'"},
		{"cut", good[:len(good)-1], "it ends in the middle of a value"},
		{"cut_in_string", good[:len(good)-4], "it ends in the middle of a value"},
		{"byte_order_mark", "\ufeff" + good, "invalid character"},
		{"nul_at_end", good + "\x00", "trailing data"},
		{"second_object", good + good, "trailing data"},
		{"second_object_after_space", good + " " + good, "trailing data"},
		{"trailing_comma", good + ",", "trailing data"},
		{"trailing_brace", good + "}", "trailing data"},
		{"trailing_word", good + " ok", "trailing data"},
		{"duplicate_at_top", swap(`{"kind"`, `{"kind":"query","kind"`), `duplicate object member name "kind"`},
		{"duplicate_unknown_at_top", swap(`{`, `{"x":1,"x":1,`), `duplicate object member name "x"`},
		{"duplicate_by_escape", swap(`{"kind"`, `{"k\u0069nd":"query","kind"`), `duplicate object member name "kind"`},
		{"duplicate_in_metadata", swap(`"id":`, `"id":"other","id":`), `duplicate object member name "id"`},
		{"duplicate_in_data", swap(`{"b"`, `{"b":0,"b"`), `duplicate object member name "b"`},
		{"duplicate_in_array", swap(`{"c":1`, `{"c":1,"c":1`), `duplicate object member name "c"`},
		{"bad_utf8_in_type", swap("Syscall", "Sys\xffcall"), "invalid UTF-8"},
		{"bad_utf8_in_name", swap(`"c"`, "\"\xc3\x28\""), "invalid UTF-8"},
		{"bad_utf8_in_data", swap(`0`, "\"\xed\xa0\x80\""), "invalid UTF-8"},
		{"bad_utf8_between", swap(`[0`, "[\xff0"), "invalid"},
		{"lone_surrogate", swap(`0`, `"\ud800"`), "invalid surrogate pair"},
		{"lone_surrogate_in_unknown_member", swap(`{`, `{"x":"\udc00",`), "invalid surrogate pair"},
		{"lone_surrogate_in_name", swap(`"c"`, `"\ud800x"`), "invalid surrogate pair"},
		{"surrogate_before_a_secret", swap(`0`, `"\ud800hunter"`), "invalid surrogate pair in string"},
		{"escape_in_a_secret", swap(`0`, `"\uhunter"`), "invalid escape sequence in string"},
		{"surrogate_at_the_end", swap(`0`, `"\ud800","hunter"`), "invalid surrogate pair in string"},
		{"control_character", swap("m-1", "m\x01"), `invalid character '\x01'`},
		{"single_quotes", strings.ReplaceAll(good, `"`, `'`), "invalid character"},
		{"comment", swap("{", "{/**/"), "invalid character"},
	} {
		for _, d := range dialects {
			t.Run(tc.name+"/"+d.String(), func(t *testing.T) {
				t.Parallel()
				m, err := schema.Decode([]byte(tc.line), d)
				if err == nil {
					t.Fatalf("decoded as %+v", m)
				}
				if err.Kind != fault.InvalidJSON || err.Code() != 400 || err.EventCode() != "INVALID_JSON" || err.Field != "" {
					t.Errorf("class %d, codes %d and %s, field %q", err.Kind, err.Code(), err.EventCode(), err.Field)
				}
				if !strings.HasPrefix(err.Message, "Invalid JSON: ") || !strings.Contains(err.Message, tc.message) {
					t.Errorf("message %q, want Invalid JSON: and %q", err.Message, tc.message)
				}
				if strings.Contains(err.Message, "hunt") {
					t.Errorf("message %q repeats a value", err.Message)
				}
				if strings.Contains(err.Message, "jsontext") {
					t.Errorf("message %q names a library", err.Message)
				}
				if m.Dialect != d || m.Type != "" || m.Meta.ID != "" {
					t.Errorf("carries %+v", m)
				}
			})
		}
	}
}

// TestDecodeSyntaxFaultIsShort checks that the fault for a repeated name of any length fits a line (MESSAGE 4.3.2 #1).
func TestDecodeSyntaxFaultIsShort(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"a", "\u00e9", "\U0001f600", `\u0000`} {
		name := `"` + strings.Repeat(unit, 7000/len(unit)) + `"`
		_, err := schema.Decode([]byte(`{`+name+`:1,`+name+`:2}`), schema.OsMessage)
		if err == nil || len(err.Message) > 300 || !strings.Contains(err.Message, "duplicate") || !strings.HasSuffix(err.Message, "…") {
			t.Errorf("%s: %v", unit, err)
		}
	}
}

// TestDecodeDepth checks that a frame may be nested 64 deep, including its envelope, and that brackets in strings do not count
// (PROTOCOL 2).
func TestDecodeDepth(t *testing.T) {
	t.Parallel()
	nested := func(open, inner, shut string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(shut, n)
	}
	const most = schema.MaxDepth - 1 // in data, inside the envelope
	for _, tc := range []struct {
		name   string
		data   string
		accept bool
	}{
		{"arrays_64", nested("[", "", "]", most), true},
		{"arrays_65", nested("[", "", "]", most+1), false},
		{"objects_64", nested(`{"a":`, "0", "}", most), true},
		{"objects_65", nested(`{"a":`, "0", "}", most+1), false},
		{"mixed_64", `[` + nested(`{"a":[`, "0", "]}", most/2) + `]`, true},
		{"mixed_65", `[[` + nested(`{"a":[`, "0", "]}", most/2) + `]]`, false},
		{"empty_object_at_64", nested("[", "{}", "]", most-1), true},
		{"empty_object_at_65", nested("[", "{}", "]", most), false},
		{"wide", "[" + strings.Repeat("[],", 1000) + "[]]", true},
		{"wide_then_deep", "[" + strings.Repeat("[],", 1000) + nested("[", "", "]", most) + "]", false},
		{"text", `"` + strings.Repeat("[{", 1000) + `"`, true},
		{"text_with_quotes", `"` + strings.Repeat(`[\"{\\`, 1000) + `"`, true},
		{"text_in_names", `{"` + strings.Repeat("[", 100) + `":"\\"}`, true},
		{"deep_after_text", `["\"]]",` + nested("[", "", "]", most) + `]`, false},
		{"hostile", strings.Repeat("[", 100_000), false},
		{"hostile_objects", strings.Repeat(`{"":`, 20_000), false},
	} {
		eachDialect(t, tc.name, func(t *testing.T, d schema.Dialect) {
			m, err := schema.Decode([]byte(ping(d, tc.data)), d)
			if tc.accept {
				if err != nil || string(m.Data) != tc.data {
					t.Errorf("error %v, %d bytes of data", err, len(m.Data))
				}
				return
			}
			if err == nil || err.Kind != fault.InvalidJSON || err.Message != "Invalid JSON: nested deeper than 64 levels" {
				t.Errorf("error %v", err)
			}
		})
	}
	if text := []byte(nested("[", "", "]", schema.MaxDepth)); !schema.Valid(text) || schema.Valid([]byte("["+string(text)+"]")) {
		t.Error("Valid counts another depth")
	}
}

// TestDecodeManyMembers checks that frames with few and with many members, which have different code paths, have the same grammar.
func TestDecodeManyMembers(t *testing.T) {
	t.Parallel()
	for count := 1; count <= 40; count++ {
		var data strings.Builder
		for n := range count {
			fmt.Fprintf(&data, `,"m%d":[%d,{}]`, n, n)
		}
		good := data.String()[1:]
		for _, tc := range []struct {
			members string
			strict  bool
		}{
			{good, true},
			{good + ",", false},
			{good + `,"m0":1`, false},
			{good + `,"m0"`, false},
			{strings.Replace(good, ",{}]", ",{},]", 1), false},
			{strings.Replace(good, ",{}]", ",{}}", 1), false},
			{strings.Replace(good, "[0,", "[01,", 1), false},
			{strings.Replace(good, "[0,", "[-,", 1), false},
			{strings.Replace(good, "[0,", "[1.5e3,", 1), true},
		} {
			for _, line := range []string{
				ping(schema.OsMessage, "{"+tc.members+"}"),
				strings.Replace(ping(schema.OsMessage, "1"), "{", "{"+tc.members+",", 1),
			} {
				_, err := schema.Decode([]byte(line), schema.OsMessage)
				if strict := err == nil || err.Kind != fault.InvalidJSON; strict != tc.strict {
					t.Errorf("%s: %v, want strict JSON: %t", line, err, tc.strict)
				}
			}
		}
	}
}

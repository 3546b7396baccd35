package schema_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestDecodePassesDataThrough checks that data may be any JSON value and is passed on unchanged (BRIDGE 4.2.1 #4, MESSAGE 4.1.1 #3,
// MESSAGE 4.6.1 #5, MESSAGE 8.4, EVENT 4.1.1 #3, EVENT 4.6.1 #5, EVENT 8.4).
func TestDecodePassesDataThrough(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`null`, `true`, `false`, `{}`, `[]`, `""`, `0`,
		`12345678901234567890`, `1e400`, `-1e400`, `-0`, `-0.0`, `1E+2`, `1e2`, `0.1e-9`, `1.0`, `1.50`, `1e1000000000`, `9007199254740993`,
		`"\u0000"`, `"\u0041\/\b"`, `"\ud83d\ude00"`, "\"\U0001f600\u2028\u2029\x7f\"", `"\uFFFF"`, `"<script>&amp;"`,
		`{"b":1,"a":2,"":3}`, `{"a":1,"A":2,"\u00e4":3}`, `{ "a" : [ 1 ,	2 ] }`, "[\r1,\r2]", `{"__proto__":null}`,
		`"` + strings.Repeat("x", 40) + `\\"`, `"` + strings.Repeat("é", 5000) + `"`, `"` + strings.Repeat(`\n`, 5000) + `"`,
		`{"kind":"query","metadata":{"id":""}}`, `[{"k":"}"},"{",["]"]]`,
	} {
		for _, d := range dialects {
			for _, frame := range []string{
				ping(d, data),
				in(d, `{"metadata":`+metadata+`,"@type":"Syscall.Ping","@kind":"query","@data":`) + data + `}`,
				in(d, " \t{\r\"@data\"\t: \r") + data + in(d, " \t,\r \"@kind\" : \"query\",\"@type\"\t:\"Syscall.Ping\" ,\"metadata\": ") + metadata + " }\t \r",
			} {
				m := decode(t, frame, d)
				if string(m.Data) != data {
					t.Errorf("%v: %.60s came out as %.60s", d, data, m.Data)
				}
				if m.Type != "Syscall.Ping" || m.Kind != schema.KindQuery || m.Meta.ID != "m-1" {
					t.Errorf("%v: %.60s: read %+v", d, data, m)
				}
			}
		}
	}
}

// TestDecodeTakesWhiteSpace checks that a frame may have any JSON white space, also a carriage return before the line break
// (PROTOCOL 2).
func TestDecodeTakesWhiteSpace(t *testing.T) {
	t.Parallel()
	eachDialect(t, "between_tokens", func(t *testing.T, d schema.Dialect) {
		for _, frame := range []string{
			ping(d, `1`) + "\r",
			" \t\r\n" + ping(d, `1`) + " \t\r\n",
			strings.NewReplacer(`:`, "\r:\n", `,`, " ,\t", `{`, "{\n", `}`, " }").Replace(ping(d, `1`)),
		} {
			if m := decode(t, frame, d); string(m.Data) != "1" || m.Meta.Correlation != "flow-1" {
				t.Errorf("Decode(%q) read %+v", frame, m)
			}
		}
	})
}

// TestDecodeIgnoresUnknownMembers checks that unknown members of the envelope, and those of the other dialect, are ignored, with any
// value and at any position (BRIDGE 4.2.1 #1).
func TestDecodeIgnoresUnknownMembers(t *testing.T) {
	t.Parallel()
	strange := `"Kind":[],"":{"kind":"error"},"TYPE":null,"meta":[{"a":"}"}],"version":1e400,"\u0000":"\\\""`
	eachDialect(t, "first_and_last", func(t *testing.T, d schema.Dialect) {
		other := map[schema.Dialect]string{schema.OsMessage: `"name":"Wrong.Name","payload":"wrong"`, schema.OsEvent: `"data":"wrong"`}[d]
		good := ping(d, `{"a":1}`)
		for _, frame := range []string{
			`{` + strange + `,` + good[1:],
			good[:len(good)-1] + `,` + strange + `}`,
			`{` + other + `,` + good[1:],
			good[:len(good)-1] + `,` + other + `}`,
		} {
			m := decode(t, frame, d)
			if m.Dialect != d || m.Type != "Syscall.Ping" || string(m.Data) != `{"a":1}` || m.Meta.ID != "m-1" {
				t.Errorf("Decode(%s) read %+v", frame, m)
			}
		}
	})
}

// TestDecodeDoesNotCopy checks that the data aliases the line.
func TestDecodeDoesNotCopy(t *testing.T) {
	t.Parallel()
	line := []byte(ping(schema.OsMessage, `{"payload":"first"}`))
	m, err := schema.Decode(line, schema.OsMessage)
	if err != nil {
		t.Fatal(err)
	}
	copy(line, strings.Replace(string(line), "first", "other", 1))
	if string(m.Data) != `{"payload":"other"}` || m.Meta.ID != "m-1" {
		t.Errorf("read %s, id %s", m.Data, m.Meta.ID)
	}
}

package jsonschema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema/jsonschema"
)

func compile(t testing.TB, text string) *jsonschema.Schema {
	t.Helper()
	s, wrong := jsonschema.Compile([]byte(text))
	if wrong != nil {
		t.Fatalf("%s: %s %s", text, wrong.At, wrong.Why)
	}
	return s
}

// TestCheck checks the place and the reason of misfits.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		schema, good string
		bad          map[string]string // value to place, colon and part of the reason
	}{
		{`{}`, `7`, nil},
		{`{"properties":{"a":true,"b":false}}`, `{"a":1}`, map[string]string{`{"b":1}`: "b:not allowed"}},
		{`{"type":["string","null"]}`, `null`, map[string]string{`1`: ":must be null or a string", `{}`: ":a string"}},
		{`{"type":"integer"}`, `3.0e1`, map[string]string{`3.5`: ":an integer"}},
		{`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b c":{"type":"number"}}}}}}`, `{"a":[{"b c":1}],"z":0}`, map[string]string{
			`{"a":[{},{"b c":"1"}]}`: "a[1].b c:must be a number",
		}},
		{`{"required":["a","b"]}`, `{"a":1,"b":2}`, map[string]string{`{"a":1}`: "b:is missing"}},
		{`{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1}`, map[string]string{`{"a":1,"b":2}`: "b:not a member"}},
		{`{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":{"type":"null"}}`, `{"x1":"","y":null}`, map[string]string{`{"x":1}`: "x:string", `{"y":1}`: "y:null"}},
		{`{"propertyNames":{"maxLength":2}}`, `{"ab":1}`, map[string]string{`{"abc":1}`: ":name must have at most 2"}},
		{`{"minProperties":1,"maxProperties":2}`, `{"a":1}`, map[string]string{`{}`: ":at least 1", `{"a":1,"b":1,"c":1}`: ":at most 2"}},
		{`{"enum":[1,{"a":[1.0],"b":null}]}`, `{"b":null,"a":[1e0]}`, map[string]string{`2`: ":one of"}},
		{`{"const":"a"}`, `"\u0061"`, map[string]string{`"b"`: ":one of"}},
		{`{"enum":["a","b"],"const":"a"}`, `"a"`, map[string]string{`"b"`: ":one of"}},
		{`{"minLength":2,"maxLength":3,"pattern":"^é"}`, `"éab"`, map[string]string{`"é"`: ":at least 2", `"éabc"`: ":at most 3", `"ab"`: ":must match"}},
		{`{"minimum":1,"exclusiveMaximum":9007199254740993}`, `9007199254740992`, map[string]string{`0.99`: ":at least 1", `9007199254740993`: ":below"}},
		{`{"maximum":1,"exclusiveMinimum":-1}`, `-0.99999999999999999999`, map[string]string{`1.00000000000000000001`: ":at most", `-1`: ":above"}},
		{`{"multipleOf":0.01}`, `4.35`, map[string]string{`4.355`: ":multiple"}},
		{`{"multipleOf":3}`, `6e20`, map[string]string{`1e20`: ":multiple"}},
		{`{"prefixItems":[{"type":"string"}],"items":{"type":"number"}}`, `["a",1,2]`, map[string]string{`[1]`: "[0]:a string", `["a",1,"b"]`: "[2]:a number"}},
		{`{"items":[{"type":"string"}],"additionalItems":false}`, `["a"]`, map[string]string{`["a",1]`: "[1]:not allowed"}},
		{`{"minItems":1,"maxItems":2,"uniqueItems":true}`, `[1,2]`, map[string]string{`[]`: ":at least 1", `[1,2,3]`: ":at most 2", `[1,1.0]`: "[1]:repeated"}},
		{`{"contains":{"const":1},"minContains":2,"maxContains":3}`, `[1,1,0]`, map[string]string{`[1]`: ":at least 2", `[1,1,1,1]`: ":at most 3"}},
		{`{"allOf":[{"type":"object"},{"required":["a"]}]}`, `{"a":1}`, map[string]string{`{}`: "a:is missing"}},
		{`{"anyOf":[{"type":"string"},{"type":"object","properties":{"a":{"type":"string"}}}]}`, `"x"`, map[string]string{`{"a":1}`: "a:a string"}},
		{`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, `1`, map[string]string{`3`: ":fits 2", `1.5`: ":"}},
		{`{"not":{"required":["a"]}}`, `{}`, map[string]string{`{"a":1}`: ":excludes"}},
		{`{"if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"required":["a"]},"else":{"required":["b"]}}`, `{"k":1,"a":1}`, map[string]string{`{"k":1}`: "a:missing", `{"k":2}`: "b:missing"}},
		{`{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}`, `{"a":1,"b":1}`, map[string]string{`{"a":1}`: "b:missing", `{"c":1}`: "d:missing"}},
		{`{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{}`, map[string]string{`{"a":1}`: "b:missing", `{"c":1}`: "d:missing"}},
		{`{"allOf":[{"properties":{"a":true}}],"properties":{"b":true},"unevaluatedProperties":false}`, `{"a":1,"b":2}`, map[string]string{`{"a":1,"c":2}`: "c:not allowed"}},
		{`{"anyOf":[{"prefixItems":[{"const":1},true]},{"prefixItems":[true]}],"unevaluatedItems":false}`, `[1,2]`, map[string]string{`[2,2]`: "[1]:not allowed"}},
		{`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}`, `[[],[[]]]`, map[string]string{`[[[1]]]`: "[0][0][0]:an array"}},
		{`{"properties":{"a":{"$ref":"#/properties/b~1c%25"},"b/c%":{"type":"string"}}}`, `{"a":""}`, map[string]string{`{"a":1}`: "a:a string"}},
		{`{"pattern":"^(?!a)","format":"email","x-mine":{"type":7},"contentEncoding":"base64"}`, `"a"`, nil},
		{`{"patternProperties":{"(?!a)":{"type":"string"}},"additionalProperties":false}`, `{"a":1}`, nil},
	} {
		s := compile(t, test.schema)
		if m := s.Check([]byte(test.good)); m != nil {
			t.Errorf("%s: %s: %+v", test.schema, test.good, m)
		}
		for value, want := range test.bad {
			at, why, _ := strings.Cut(want, ":")
			if m := s.Check([]byte(value)); m == nil || m.At != at || !strings.Contains(m.Why, why) {
				t.Errorf("%s: %s: %+v, want %s", test.schema, value, m, want)
			}
		}
	}
}

// TestCompile checks that an invalid schema, or one that cannot be checked, is refused with the place.
func TestCompile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`7`:                                      ":must be a schema",
		`{"properties":{"a":{"type":"strnig"}}}`: "properties.a.type:must be one of",
		`{"type":[]}`:                            "type:must name a type",
		`{"type":7}`:                             "type:",
		`{"properties":[]}`:                      "properties:must be an object",
		`{"properties":{"a":1}}`:                 "properties.a:must be a schema",
		`{"$defs":{"a":{"minLength":-1}}}`:       "$defs.a.minLength:whole number",
		`{"required":[1]}`:                       "required[0]:must be a string",
		`{"required":"a"}`:                       "required:array of strings",
		`{"enum":1}`:                             "enum:must be an array",
		`{"anyOf":[]}`:                           "anyOf:not empty",
		`{"allOf":[true,3]}`:                     "allOf[1]:must be a schema",
		`{"multipleOf":0}`:                       "multipleOf:above 0",
		`{"minimum":"1"}`:                        "minimum:must be a number",
		`{"exclusiveMinimum":true}`:              "exclusiveMinimum:must be a number",
		`{"uniqueItems":1}`:                      "uniqueItems:true or false",
		`{"pattern":"["}`:                        "pattern:no regular expression",
		`{"pattern":1}`:                          "pattern:must be a string",
		`{"patternProperties":{"(":{}}}`:         "patternProperties.(:no regular expression",
		`{"pattern":"((a{100}){100}){100}"}`:     "pattern:too large",
		`{"pattern":"` + strings.Repeat("a{999}", 11) + `"}`: "pattern:too large",
		`{"pattern":"(a{99}){99}"}`:                          "pattern:too large",
		`{"dependentRequired":{"a":1}}`:                      "dependentRequired.a:",
		`{"dependencies":1}`:                                 "dependencies:",
		`{"$ref":"http://example.com/s"}`:                    "$ref:a schema of this one",
		`{"$ref":"#name"}`:                                   "$ref:a schema of this one",
		`{"$ref":"#/$defs/none"}`:                            "$ref:names nothing",
		`{"$ref":"#/allOf/-1","allOf":[true]}`:               "$ref:names nothing",
		`{"$ref":1}`:                                         "$ref:",
		`{"$ref":"#"}`:                                       ":without end",
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"not":{"anyOf":[true,{"$ref":"#/$defs/a"}]}}}}`: "$defs.a:without end",
		`{"if":{"dependentSchemas":{"a":{"$ref":"#"}}}}`:                                         ":without end",
		`{"$dynamicRef":"#a"}`:      "$dynamicRef:not supported",
		`{"items":{"$id":"other"}}`: "items.$id:not supported",
	} {
		at, why, _ := strings.Cut(want, ":")
		if s, wrong := jsonschema.Compile([]byte(text)); wrong == nil || s != nil || wrong.At != at || !strings.Contains(wrong.Why, why) {
			t.Errorf("%s: %+v, want %s", text, wrong, want)
		}
	}
}

// TestHostile checks that schemas and values whose check could take unlimited time or memory are refused.
func TestHostile(t *testing.T) {
	t.Parallel()
	doubling := func(keyword string) string { // 2^40 paths to the last schema
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/n40","$defs":{"n0":{"type":"string"}`)
		for i := range 40 {
			fmt.Fprintf(&b, `,"n%d":{%q:[{"$ref":"#/$defs/n%d"},{"$ref":"#/$defs/n%[3]d"}]}`, i+1, keyword, i)
		}
		return b.String() + `}}`
	}
	deep := strings.Repeat("[", 50) + strings.Repeat("]", 50)
	const tooLong = "takes too long"
	for _, test := range []struct{ schema, value, why string }{
		{doubling("anyOf"), `1`, tooLong},
		{doubling("oneOf"), `1`, tooLong},
		{doubling("allOf"), `"a"`, tooLong},
		{`{"not":` + doubling("anyOf")[:1] + `"$ref":"#/$defs/n40"},` + doubling("anyOf")[len(`{"$ref":"#/$defs/n40",`):], `1`, tooLong},
		{`{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`, deep, tooLong},
		{`{"items":{"$ref":"#"},"contains":{"$ref":"#"},"minContains":0}`, deep, tooLong},
		{`{"unevaluatedItems":{"$ref":"#"},"anyOf":[{"items":{"$ref":"#"}},{"contains":{"$ref":"#"},"minContains":0}]}`, deep, tooLong},
		{`{"enum":[` + strings.Repeat("1,", 5000) + `1]}`, `[` + strings.Repeat("1,", 200_000) + `1]`, "one of"},
		{`{"items":{"enum":[` + strings.Repeat("2,", 5000) + `1]}}`, `[` + strings.Repeat("1,", 200_000) + `1]`, ""},
		{`{"uniqueItems":true}`, `[` + strings.Repeat("[],", 200_000) + `1]`, "repeated"},
		{`{"multipleOf":1e999999999,"minimum":1e-999999999}`, `1e1000000000`, ""},
		{`{"multipleOf":7}`, strings.Repeat("1", 900_000), tooLong},
		{`{"multipleOf":7}`, `[` + strings.Repeat("1", 900_000) + `]`, ""},
		{`{"pattern":"` + strings.Repeat("(x?y?z?){9}", 90) + `q"}`, `"` + strings.Repeat("xyz", 300_000) + `"`, tooLong},
		{`{"patternProperties":{"` + strings.Repeat("(x?y?z?){9}", 90) + `q":true}}`, `{"` + strings.Repeat("xyz", 300_000) + `":1}`, tooLong},
		{`{"items":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 800) + `{}]}}`, `[` + strings.Repeat("1,", 200_000) + `1]`, tooLong},
		{`{"pattern":"^(a|aa)+$"}`, `"` + strings.Repeat("a", 10_000) + `b"`, "must match"},
		{`{"items":{"pattern":"(x+x+)+y"}}`, `["` + strings.Repeat("x", 500_000) + `"]`, "must match"},
	} {
		s := compile(t, test.schema)
		m := s.Check([]byte(test.value))
		if (m != nil) != (test.why != "") || m != nil && !strings.Contains(m.Why, test.why) {
			t.Errorf("%.60s: %+v, want %q", test.schema, m, test.why)
		}
	}
}

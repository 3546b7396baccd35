package jsontype_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// secret is a value that no error message may repeat (MESSAGE 8.2 #2, EVENT 8.2 #2-#3).
const secret = "hunter2"

// TestDecodeDataFaults checks that a fault has the member and the expected form, and never the value (EVENT 4.7.3 #4, MESSAGE 8.2 #2,
// EVENT 8.2 #2-#3).
func TestDecodeDataFaults(t *testing.T) {
	t.Parallel()
	const inner = `{"name":"a"}`
	for _, tc := range []struct{ typ, data, field, message string }{
		{"texts", `[]`, "data", "must be an object"},
		{"texts", `"` + secret + `"`, "data", "must be an object"},
		{"texts", `null`, "any", "is missing"},
		{"texts", `{"any":""}`, "not_none", "is missing"},
		{"texts", `{"any":"","not_none":""}`, "not_none", "must not be empty"},
		{"texts", `{"any":null}`, "any", "must be a string"},
		{"texts", `{"both":"é"}`, "both", "must have at least 2 characters"},
		{"texts", `{"both":"` + secret + `"}`, "both", "must have at most 5 characters"},
		{"texts", `{"word":"` + secret + `"}`, "word", "must be one of low, high, very-high"},
		{"texts", `{"word":""}`, "word", "must be one of low, high, very-high"},
		{"texts", `{"pointer":null}`, "pointer", "must be a string"},
		{"texts", `{"Any":"` + secret + `"}`, "Any", "is not a member of this syscall's data: it takes any, not_none, short, both, word, pointer, maybe"},
		{"numbers", `{"integer":"7"}`, "integer", "must be an integer"},
		{"numbers", `{"integer":1.5}`, "integer", "must be an integer"},
		{"numbers", `{"integer":9007199254740992}`, "integer", "must be an integer"},
		{"numbers", `{"between":13}`, "between", "must be an integer of at least -3 and at most 12"},
		{"numbers", `{"at_most":-6}`, "at_most", "must be an integer of at most -7"},
		{"numbers", `{"number":true}`, "number", "must be a finite number"},
		{"numbers", `{"number":1e400}`, "number", "must be a finite number"},
		{"numbers", `{"amount":-1}`, "amount", "must be a finite number of at least 0"},
		{"numbers", `{"ratio":1}`, "ratio", "must be a finite number of at least 0 and at most 0.1"},
		{"numbers", `{"negative":0}`, "negative", "must be a finite number of at most -0.0000001"},
		{"nested", `{"flag":"true"}`, "flag", "must be true or false"},
		{"nested", `{"flag":0}`, "flag", "must be true or false"},
		{"nested", `{"maybe":null}`, "maybe", "must be true or false"},
		{"nested", `{"object":[` + inner + `]}`, "object", "must be an object"},
		{"nested", `{"object":{}}`, "object.name", "is missing"},
		{"nested", `{"object":{"name":"a","\u0000":1}}`, "object.\x00", "is not a member of this syscall's data: it takes name, score, tags"},
		{"nested", `{"pointer":null}`, "pointer", "must be an object"},
		{"nested", `{"objects":` + inner + `}`, "objects", "must be an array"},
		{"nested", `{"objects":[` + inner + `,` + inner + `,{"name":"` + secret + `"}]}`, "objects[2].name", "must have at most 3 characters"},
		{"nested", `{"objects":[{"name":"a","tags":["a","` + secret + `"]}]}`, "objects[0].tags[1]", "must be one of a, bb, ccc"},
		{"nested", `{"matrix":[[1],[2,10]]}`, "matrix[1][1]", "must be an integer of at least 0 and at most 9"},
		{"nested", `{"amounts":[]}`, "amounts", "must be an object"},
		{"nested", `{"amounts":{"gpu":-1}}`, "amounts.gpu", "must be a finite number of at least 0"},
		{"nested", `{"lists":{"a":["xx","xxx"]}}`, "lists.a[1]", "must have at most 2 characters"},
		{"nested", `{"deep":{"a":{"b":1,"c":"x"}}}`, "deep.a.c", "must be an integer"},
		{"nested", `{"pid":-1}`, "pid", "must be an integer of at least 0"},
		{"none", `{"x":1}`, "x", "is not a member of this syscall's data: it takes none"},
		{"list", `{}`, "data", "must be an array"},
		{"list", `[7]`, "[0]", "must be an object"},
		{"text", `null`, "data", "must be a string"},
		{"flag", `null`, "data", "must be true or false"},
	} {
		in, err := shapes()[tc.typ].Decode([]byte(tc.data))
		if err == nil {
			t.Errorf("%s %s: decoded as %+v", tc.typ, tc.data, in)
			continue
		}
		if want := "Invalid input: " + tc.field + " " + tc.message; err.Kind != fault.InvalidInput || err.Field != tc.field || err.Message != want {
			t.Errorf("%s %s: %d at %q: %s, want %s", tc.typ, tc.data, err.Kind, err.Field, err.Message, want)
		}
		if strings.Contains(err.Message, secret) {
			t.Errorf("%s %s repeats the value: %s", tc.typ, tc.data, err.Message)
		}
	}
}

// TestDecodeDataValues checks the Go values of valid data: absent optional members are zero or nil, raw values are unchanged.
func TestDecodeDataValues(t *testing.T) {
	t.Parallel()
	pid, yes := int64(7), true
	inner := shapeInner{Name: "é€\U0001f600", Score: -1.5, Tags: []string{"ccc", "a"}}
	const written = `{"tags":["ccc","a"],"name":"\u00e9€\ud83d\ude00","score":-15e-1}`
	for _, tc := range []struct {
		name, data string
		typ        *jsontype.Type
		want       any
	}{
		{"least", `{"flag":false,"raw":null,"object":{"name":"a"}}`, jsontype.Of[shapeNested](), &shapeNested{Raw: jsontype.Value("null"), Object: shapeInner{Name: "a"}}},
		{
			"most", `{"pid":7.0,"tick":1e2,"flag":true,"maybe":true,"raw":[ 1e400 ],"raw_too":"\u0000","object":` + written + `,"pointer":` + written +
				`,"objects":[` + written + `],"matrix":[[],[1,2]],"values":[1,{ }],"amounts":{"":0,"g\u0070u":0.5},"lists":{"a":[]},"inner":{"x":` + written +
				`},"changes":{"k":-0},"deep":{"a":{},"b":{"c":1}}}`,
			jsontype.Of[shapeNested](),
			&shapeNested{
				shapeCommon: shapeCommon{PID: &pid, Tick: 100}, Flag: true, Maybe: &yes, Raw: jsontype.Value("[ 1e400 ]"), RawToo: jsontype.Value(`"\u0000"`),
				Object: inner, Pointer: &inner, Objects: []shapeInner{inner}, Matrix: [][]int64{{}, {1, 2}}, Values: []jsontype.Value{jsontype.Value("1"), jsontype.Value("{ }")},
				Amounts: map[string]float64{"": 0, "gpu": 0.5}, Lists: map[string][]string{"a": {}}, Inner: map[string]shapeInner{"x": inner},
				Changes: map[string]jsontype.Value{"k": jsontype.Value("-0")}, Deep: map[string]map[string]int64{"a": {}, "b": {"c": 1}},
			},
		},
		{"null_data", `null`, jsontype.Of[shapeNone](), &shapeNone{}},
		{"list", `[` + written + "\t,\r" + written + ` ]`, jsontype.Of[[]shapeInner](), &[]shapeInner{inner, inner}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.typ.Decode([]byte(tc.data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(shapeNested{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDecodeUntrusted: a text from outside may be cut off anywhere, or be no JSON at all.
func TestDecodeUntrusted(t *testing.T) {
	t.Parallel()
	type pair struct {
		Name string  `json:"name"`
		List []int64 `json:"list"`
	}
	const whole = `{"name":"a\u0062","list":[1,-2]}`
	of := jsontype.Of[pair]()
	if got, err := of.DecodeUntrusted([]byte(whole)); err != nil || got.(*pair).Name != "ab" {
		t.Errorf("%v, %v", got, err)
	}
	for n := range len(whole) {
		for _, end := range []string{"", "]", "\x00", `"`} {
			if got, err := of.DecodeUntrusted([]byte(whole[:n] + end)); err == nil {
				t.Errorf("%q is decoded as %v", whole[:n]+end, got)
			}
		}
	}
}

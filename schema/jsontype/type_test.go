package jsontype_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// TestOnce: a Go type is described once, since every value that is decoded needs its description.
func TestOnce(t *testing.T) {
	t.Parallel()
	type own struct {
		N int64 `json:"n"`
	}
	first := jsontype.Of[own]()
	if second := jsontype.Of[own](); second != first {
		t.Error("a second use made another description")
	}
	if first == jsontype.Of[shapeInner]() {
		t.Error("two types have one description")
	}
}

// TestJSONSchemaGolden checks the text of the JSON Schema of each shape and bound (MESSAGE 4.8 #1-#5).
func TestJSONSchemaGolden(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		typ  *jsontype.Type
		want string
	}{
		"none": {jsontype.Of[shapeNone](), `{"type":"object","properties":{},"required":[],"additionalProperties":false}`},
		"inner": {jsontype.Of[shapeInner](), `{"type":"object","properties":{` +
			`"name":{"type":"string","minLength":1,"maxLength":3,"description":"A name."},` +
			`"score":{"type":"number","minimum":-1.5,"maximum":1e+21,"description":"A score."},` +
			`"tags":{"type":"array","items":{"type":"string","enum":["a","bb","ccc"]},"description":"Tags."}` +
			`},"required":["name"],"additionalProperties":false}`},
		"embedded": {jsontype.Of[struct{ shapeCommon }](), `{"type":"object","properties":{` +
			`"pid":{"type":"integer","minimum":0,"maximum":9007199254740991,"description":"The process."},` +
			`"tick":{"type":"integer","minimum":0,"maximum":9007199254740991,"description":"The tick."}` +
			`},"required":[],"additionalProperties":false}`},
		"unbounded": {jsontype.Of[numberBox](), `{"type":"object","properties":{` +
			`"n":{"type":"number","minimum":-1.7976931348623157e+308,"maximum":1.7976931348623157e+308}` +
			`},"required":["n"],"additionalProperties":false}`},
		"one_bound": {
			jsontype.Of[struct {
				N float64 `json:"n" max:"0.5"`
			}](),
			`{"type":"object","properties":{"n":{"type":"number","minimum":-1.7976931348623157e+308,"maximum":0.5}},"required":["n"],"additionalProperties":false}`,
		},
		"dictionary": {jsontype.Of[map[string]bool](), `{"type":"object","additionalProperties":{"type":"boolean"}}`},
		"anything":   {jsontype.Of[jsontype.Value](), `{}`},
		"maybe":      {jsontype.Of[jsontype.MaybeText](), `{"type":["string","null"]}`},
		"anything_described": {
			jsontype.Of[struct {
				V jsontype.Value `json:"v" doc:"Say \"x\"."`
			}](),
			`{"type":"object","properties":{"v":{"description":"Say \"x\"."}},"required":["v"],"additionalProperties":false}`,
		},
	} {
		if got := string(tc.typ.AppendJSONSchema([]byte("x"))); got != "x"+tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tc.want)
		}
	}
}

// TestTypeOfPanics checks that Of panics for a type that is not supported.
func TestTypeOfPanics(t *testing.T) {
	t.Parallel()
	type namedString string
	for name, build := range map[string]func() *jsontype.Type{
		"channel":         jsontype.Of[chan int],
		"int":             jsontype.Of[int],
		"uint64":          jsontype.Of[uint64],
		"float32":         jsontype.Of[float32],
		"bytes":           jsontype.Of[[]byte],
		"interface":       jsontype.Of[any],
		"pointer":         jsontype.Of[*string],
		"function":        jsontype.Of[func()],
		"numbered_names":  jsontype.Of[map[int64]string],
		"pointer_in_list": jsontype.Of[[]*int64],
		"no_name":         jsontype.Of[struct{ A string }],
		"no_name_option": jsontype.Of[struct {
			A string `json:",omitzero"`
		}],
		"bad_bound": jsontype.Of[struct {
			A int64 `json:"a" min:"few"`
		}],
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "jsontype: ") {
					t.Errorf("%s: %q", name, text)
				}
			}()
			build()
		}()
	}
	jsontype.Of[map[namedString]namedString]() // these are texts
}

// TestMaybeText checks that a MaybeText is encoded and decoded unchanged, an empty one as null.
func TestMaybeText(t *testing.T) {
	t.Parallel()
	for text, want := range map[jsontype.MaybeText]string{"": "null", "null": `"null"`, "a\"\n": `"a\"\n"`} {
		written, err := text.MarshalJSON()
		if string(written) != want || err != nil {
			t.Errorf("%q: %s, %v", text, written, err)
		}
		if read, fault := jsontype.Of[jsontype.MaybeText]().Decode(written); fault != nil || *read.(*jsontype.MaybeText) != text {
			t.Errorf("%s: %v, %v", written, read, fault)
		}
	}
}

// TestValue checks that encoding/json marshals a Value unchanged.
func TestValue(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]string{"": "null", "1e400": "1e400", `{"a":[]}`: `{"a":[]}`} {
		if got, err := jsontype.Value(v).MarshalJSON(); string(got) != want || err != nil {
			t.Errorf("%q: %s, %v", v, got, err)
		}
	}
	raw := []byte(`[1,2]`)
	v := jsontype.Value("a longer one before")
	if err := v.UnmarshalJSON(raw); err != nil || string(v) != `[1,2]` {
		t.Errorf("%s, %v", v, err)
	}
	raw[1] = '9'
	if string(v) != `[1,2]` {
		t.Error("the value aliases its input")
	}
}

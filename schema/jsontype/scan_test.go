package jsontype_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// FuzzScan checks that Skip accepts exactly the JSON in UTF-8 that the standard library accepts, and that Scan accepts only strict JSON
// and finds the same members as Members.
func FuzzScan(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-2.5e+9,"\ud83d\ude00",true,false,null,{}]}`, `"\u00`, `[[[]]]`, `-0.0`, "\"\xff\"", "{\"a\"\r:\t1 }", `1e5`, "[\n]", `{"a":1,"a":2}`,
		`{"a":{"b":1,"b":2}}`, `{"\u0061":1}`, `{"a":"\ud800"}`, `{"a":"\n\/"}`, `{"":"` + "\x7f" + `"}`, `{"a":01}`, `{"a":1.}`, `{"a":1,}`, `{"a" 1}`, `"\`,
		`{"a":"\u00e9"}`, `"\u12g4"`, `"\uD800"`, `{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`, `{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
		`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":0,"p":0,"q":0}`, "", "{", "{\x00}", `{"a":tru}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		const depth = 100
		whole := jsontype.Skip(text, jsontype.SkipSpace(text, 0), depth)
		is := whole >= 0 && jsontype.SkipSpace(text, whole) == len(text)
		if want := json.Valid(text) && utf8.Valid(text) && !jsontype.TooDeep(text, depth); is != want {
			t.Fatalf("%q: Skip %t, JSON %t", text, is, want)
		}
		var o jsontype.Object
		if !o.Scan(text) {
			return
		}
		if !jsontext.Value(text).IsValid() || jsontype.TooDeep(text, jsontype.MaxDepth) {
			t.Fatalf("%q is no strict JSON", text)
		}
		k := 0
		jsontype.Members(text, func(name, value []byte) bool {
			if n, v := o.Member(text, k); !bytes.Equal(n, name) || !bytes.Equal(v, value) {
				t.Fatalf("%q: member %d is %q: %q, want %q: %q", text, k, n, v, name, value)
			}
			k++
			return true
		})
		if k != o.Len() {
			t.Fatalf("%q: %d members, want %d", text, o.Len(), k)
		}
	})
}

// TestScanTakesUsualFrames checks that Scan accepts usual frames.
func TestScanTakesUsualFrames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`: true, ` {"a" : [ 1.5e3 , {"b":"\n\"é"} ] } `: true, `{"a":-0}`: true, `{"a":"\u00e9"}`: false, `{"\n":1}`: false, `{"a":1,"a":2}`: false,
		`[]`: false, `{"a":1}x`: false, "{\"a\":\"\xff\"}": false,
	} {
		var o jsontype.Object
		if got := o.Scan([]byte(text)); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
	line := []byte(`{"b":1,"a":[2]}`)
	var o jsontype.Object
	o.Scan(line)
	var got []string
	for k := range o.Len() {
		name, value := o.Member(line, k)
		got = append(got, string(name)+"="+string(value))
	}
	if !slices.Equal(got, []string{"b=1", "a=[2]"}) {
		t.Errorf("members %q", got)
	}
}

// TestScanFindsEveryByte checks that a byte that ends a string or is special in it is found at any position.
func TestScanFindsEveryByte(t *testing.T) {
	t.Parallel()
	for at := range 80 {
		for c := range 256 {
			text := []byte(`"` + strings.Repeat("x", 80) + `"`)
			text[1+at] = byte(c)
			want := json.Valid(text) && utf8.Valid(text)
			if got := jsontype.Skip(text, 0, 1) == len(text); got != want {
				t.Fatalf("byte %#x at %d: %t, want %t", c, at, got, want)
			}
		}
	}
}

// A value of another kind has no members, no elements and no content: what a journal holds is valid JSON, not of one form.
func TestOfAnotherKind(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`null`, `1`, `true`, `"x"`, `[]`, `{}`, ` [1]`, `{"a":1}`} {
		var members, elements int
		jsontype.Members([]byte(text), func(_, _ []byte) bool { members++; return true })
		jsontype.Elements([]byte(text), func([]byte) bool { elements++; return true })
		content := string(jsontype.Unquote([]byte(text)))
		if (members > 0) != (text == `{"a":1}`) || (elements > 0) != (text == ` [1]`) || (content != "") != (text == `"x"`) {
			t.Errorf("%s: %d members, %d elements, content %q", text, members, elements, content)
		}
	}
}

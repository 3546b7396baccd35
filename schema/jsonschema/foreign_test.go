package jsonschema_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	foreign "github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/jsonschema"
	"github.com/promptware-os/pwos/schema/jsontype"
)

var (
	scalars = []any{nil, true, false, 0, 1, 2, 1.5, -1, "", "a", "ab", "b"}
	names   = []string{"a", "b", "c"}
)

// values generates values from a small set, so that schemas of a small set often match them.
func values(depth int) *rapid.Generator[any] {
	scalar := rapid.SampledFrom(scalars)
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(
		scalar,
		rapid.Map(rapid.SliceOfN(values(depth-1), 0, 3), func(list []any) any { return list }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom(names), values(depth-1), 0, 3), func(o map[string]any) any { return o }),
	)
}

// schemas generates schemas.
func schemas(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if depth == 0 || rapid.IntRange(0, 9).Draw(t, "bool") == 0 {
			return rapid.SampledFrom([]any{true, false, map[string]any{"type": "string"}, map[string]any{"$ref": "#/$defs/d"}}).Draw(t, "leaf")
		}
		sub := schemas(depth - 1)
		one := func() any { return sub.Draw(t, "sub") }
		list := func() any { return rapid.SliceOfN(sub, 1, 3).Draw(t, "list") }
		members := func() any { return rapid.MapOfN(rapid.SampledFrom(names), sub, 1, 3).Draw(t, "members") }
		few := func() any { return rapid.IntRange(0, 3).Draw(t, "few") }
		number := func() any { return rapid.SampledFrom([]any{0, 1, 1.5, 2}).Draw(t, "number") }
		listed := func() any { return rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(t, "names") }
		keywords := map[string]func() any{
			"type": func() any {
				return rapid.SampledFrom([]any{"string", "integer", "number", "object", "array", []any{"null", "boolean"}}).Draw(t, "type")
			},
			"enum":  func() any { return rapid.SliceOfN(values(1), 1, 4).Draw(t, "enum") },
			"const": func() any { return values(1).Draw(t, "const") },
			"allOf": list, "anyOf": list, "oneOf": list, "prefixItems": list,
			"not": one, "if": one, "then": one, "else": one, "items": one, "contains": one, "additionalProperties": one, "propertyNames": one,
			"unevaluatedProperties": one, "unevaluatedItems": one,
			"properties": members, "dependentSchemas": members,
			"patternProperties": func() any { return map[string]any{"^[ab]": one()} },
			"dependentRequired": func() any { return map[string]any{"a": listed()} },
			"required":          listed,
			"minProperties":     few, "maxProperties": few, "minItems": few, "maxItems": few, "minContains": few, "maxContains": few, "minLength": few, "maxLength": few,
			"minimum": number, "maximum": number, "exclusiveMinimum": number, "exclusiveMaximum": number,
			"multipleOf":  func() any { return rapid.SampledFrom([]any{0.5, 1, 2}).Draw(t, "multiple") },
			"pattern":     func() any { return rapid.SampledFrom([]any{"^a", "b$", "."}).Draw(t, "pattern") },
			"uniqueItems": func() any { return rapid.Bool().Draw(t, "unique") },
		}
		s := make(map[string]any)
		for _, word := range rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(keywords))), 1, 5, rapid.ID).Draw(t, "keywords") {
			s[word] = keywords[word]()
		}
		return s
	})
}

// compileForeign compiles a schema with another library.
func compileForeign(t *rapid.T, text []byte) *foreign.Schema {
	doc, err := foreign.UnmarshalJSON(bytes.NewReader(text))
	testkit.Must(t, err)
	c := foreign.NewCompiler()
	testkit.Must(t, c.AddResource("mem://schema.json", doc))
	s, err := c.Compile("mem://schema.json")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

// TestForeign checks that both libraries accept the same values.
func TestForeign(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		is := schemas(3).Draw(t, "schema")
		root := map[string]any{"allOf": []any{is}, "$defs": map[string]any{
			"d": map[string]any{"type": []any{"array", "string"}, "items": map[string]any{"$ref": "#/$defs/d"}},
		}}
		text, err := json.Marshal(root)
		testkit.Must(t, err)
		own, wrong := jsonschema.Compile(text)
		if wrong != nil {
			t.Fatalf("%s: %+v", text, wrong)
		}
		theirs := compileForeign(t, text)
		for range 4 {
			data, err := json.Marshal(values(3).Draw(t, "value"))
			testkit.Must(t, err)
			value, err := foreign.UnmarshalJSON(bytes.NewReader(data))
			testkit.Must(t, err)
			if m, err := own.Check(data), theirs.Validate(value); (m == nil) != (err == nil) {
				t.Fatalf("%s\n%s\nours: %+v\ntheirs: %v", text, data, m, err)
			}
		}
	})
}

// FuzzCompile checks that the check of any schema and value ends.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#"},"pattern":"a+"}}}`), []byte(`[["a"],{"b":1e9}]`))
	f.Add([]byte(`{"properties":{"a":{"enum":[1,"a"]}},"unevaluatedProperties":false}`), []byte(`{"a":1,"b":2}`))
	f.Fuzz(func(_ *testing.T, text, data []byte) {
		const most = 16 << 10
		if len(text) > most || len(data) > most || !jsontype.Valid(text) || !jsontype.Valid(data) {
			return
		}
		if s, wrong := jsonschema.Compile(bytes.TrimSpace(text)); wrong == nil {
			s.Check(bytes.TrimSpace(data))
		}
	})
}

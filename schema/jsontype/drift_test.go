package jsontype_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

var drafts = map[string]*jsonschema.Draft{"draft-07": jsonschema.Draft7, "2020-12": jsonschema.Draft2020}

// compile compiles the schema of typ as a schema of a draft, which also checks it against the schema of the draft.
func compile(t *testing.T, typ *jsontype.Type, draft *jsonschema.Draft) *jsonschema.Schema {
	t.Helper()
	text := typ.AppendJSONSchema(nil)
	if !jsontype.Valid(text) {
		t.Fatalf("not strict JSON: %s", text)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	testkit.Must(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	testkit.Must(t, c.AddResource("mem://type.json", doc))
	compiled, err := c.Compile("mem://type.json")
	if err != nil {
		t.Fatalf("compile %s: %v", text, err)
	}
	return compiled
}

func schemaOf(t *testing.T, typ *jsontype.Type) map[string]any {
	t.Helper()
	var s map[string]any
	testkit.Must(t, json.Unmarshal(typ.AppendJSONSchema(nil), &s))
	return s
}

// types returns the data types of every row of the syscall table, and the shapes of the tests.
func types() map[string]*jsontype.Type {
	all := shapes()
	for _, row := range schema.Syscalls() {
		all[row.Type+"/input"], all[row.Type+"/output"] = row.Input(), row.Output()
	}
	return all
}

// TestSchemaAndDecoderAgree checks that the decoder accepts exactly the documents that the schema allows, as another library checks them
// (PROTOCOL 5, MESSAGE 4.8, EVENT 4.7.3 #4).
func TestSchemaAndDecoderAgree(t *testing.T) {
	t.Parallel()
	for name, typ := range types() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schemaOf(t, typ)
			validators := map[string]*jsonschema.Schema{}
			for draft, d := range drafts {
				validators[draft] = compile(t, typ, d)
			}
			accepted, refused := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				for i := range testkit.Rounds(5, 10, 10) {
					doc := maker{t: t, careful: i == 0}.value(s)
					if i == 1 && refused == 0 && s["type"] != nil { // chance alone has once made 100 documents that are all accepted
						doc = "[[0]]"
					}
					_, err := typ.Decode([]byte(doc))
					if err != nil {
						refused++
					} else {
						accepted++
					}
					if _, fixed := s["properties"]; fixed && doc == "null" {
						doc = "{}" // null means no data
					}
					instance, jsonErr := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(doc)))
					if jsonErr != nil {
						t.Fatalf("%s: %v", doc, jsonErr)
					}
					for draft, validator := range validators {
						if verdict := validator.Validate(instance); (verdict == nil) != (err == nil) {
							t.Fatalf("%s\n%s says: %v\nthe decoder says: %v", doc, draft, verdict, err)
						}
					}
					if err != nil && (err.Kind != fault.InvalidInput || err.Message == "") {
						t.Fatalf("%s: %+v", doc, err)
					}
				}
			})
			if accepted == 0 || refused == 0 && s["type"] != nil {
				t.Errorf("%d documents were accepted, %d refused: both are needed", accepted, refused)
			}
		})
	}
}

// TestEachSchemaIsStrict checks that every schema is valid in draft 7 and later, and that the schema of every input has a description,
// lists the required members and refuses unknown ones (MESSAGE 4.8 #2-#5).
func TestEachSchemaIsStrict(t *testing.T) {
	t.Parallel()
	for _, row := range schema.Syscalls() {
		t.Run(row.Type, func(t *testing.T) {
			t.Parallel()
			for side, typ := range map[string]*jsontype.Type{"input": row.Input(), "output": row.Output()} {
				for _, draft := range drafts {
					compile(t, typ, draft)
				}
				s := schemaOf(t, typ)
				if s["type"] != "object" && (side == "input" || len(s) > 1) { // an answer may be any value, such as that of Memory.Get
					t.Errorf("%s is no object", side)
				}
				checkStrict(t, side, s)
			}
		})
	}
	for name, typ := range shapes() {
		checkStrict(t, name, schemaOf(t, typ))
	}
}

func checkStrict(t *testing.T, at string, s map[string]any) {
	t.Helper()
	for _, below := range []string{"items", "additionalProperties"} {
		if inner, ok := s[below].(map[string]any); ok {
			checkStrict(t, at+"[]", inner)
		}
	}
	if s["type"] == "integer" {
		const safe = 1<<53 - 1 // JSON readers may round larger numbers
		if s["minimum"].(float64) < -safe || s["maximum"].(float64) > safe {
			t.Errorf("%s: bounds %v and %v", at, s["minimum"], s["maximum"])
		}
	}
	properties, fixed := s["properties"].(map[string]any)
	if !fixed {
		return
	}
	required, ok := s["required"].([]any)
	if !ok || s["additionalProperties"] != false || len(properties) > 64 {
		t.Errorf("%s: required %v, additionalProperties %v, %d properties", at, s["required"], s["additionalProperties"], len(properties))
	}
	for _, name := range required {
		if _, ok := properties[name.(string)]; !ok {
			t.Errorf("%s requires %s, which it does not have", at, name)
		}
	}
	for name, property := range properties {
		inner := property.(map[string]any)
		if doc, _ := inner["description"].(string); len(doc) < 5 || !strings.HasSuffix(doc, ".") {
			t.Errorf("%s.%s: description %q", at, name, doc)
		}
		checkStrict(t, at+"."+name, inner)
	}
}

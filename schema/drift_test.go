package schema_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/schema"
)

var drafts = map[string]*jsonschema.Draft{"draft-07": jsonschema.Draft7, "2020-12": jsonschema.Draft2020}

// compile reads t's schema as one of the given draft; the compiler checks it against the draft's own schema.
func compile(t *testing.T, typ *schema.Type, draft *jsonschema.Draft) *jsonschema.Schema {
	t.Helper()
	text := typ.AppendJSONSchema(nil)
	if !schema.Valid(text) {
		t.Fatalf("not strict JSON: %s", text)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	if err := c.AddResource("mem://type.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("mem://type.json")
	if err != nil {
		t.Fatalf("compile %s: %v", text, err)
	}
	return compiled
}

func schemaOf(t *testing.T, typ *schema.Type) map[string]any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(typ.AppendJSONSchema(nil), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// types returns the data types of every row of the syscall table, and the shapes of the tests.
func types() map[string]*schema.Type {
	all := shapes()
	for _, row := range schema.Syscalls() {
		all[row.Type+"/input"], all[row.Type+"/output"] = row.Input(), row.Output()
	}
	return all
}

// PROTOCOL 5, MESSAGE 4.8, EVENT 4.7.3 #4: what the schema says of a document, the decoder does. A foreign validator reads the
// schema, as clients do.
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
				for i := range 10 {
					doc := maker{t: t, careful: i == 0}.value(s)
					_, err := typ.Decode([]byte(doc))
					if err != nil {
						refused++
					} else {
						accepted++
					}
					if _, fixed := s["properties"]; fixed && doc == "null" {
						doc = "{}" // a message without data says null
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
					if err != nil && (err.Kind != schema.InvalidInput || err.Message == "") {
						t.Fatalf("%s: %+v", doc, err)
					}
				}
			})
			if accepted == 0 || refused == 0 && s["type"] != nil {
				t.Errorf("%d documents were accepted, %d refused: nothing is shown", accepted, refused)
			}
		})
	}
}

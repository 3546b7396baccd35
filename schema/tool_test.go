package schema_test

import (
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestToolManifest: a manifest is read strictly, its schemas as they were written.
func TestToolManifest(t *testing.T) {
	t.Parallel()
	m, fault := schema.DecodeToolManifest([]byte(`{"name":"sum","description":"Adds.","input":{"type": "array"}}`))
	if fault != nil || m.Name != "sum" || m.Description != "Adds." || string(m.Input) != `{"type": "array"}` || m.Output != nil {
		t.Errorf("%+v, %v", m, fault)
	}
	for text, class := range map[string]schema.Class{
		``:                                      schema.InvalidJSON,
		`{"description":"a"} x`:                 schema.InvalidJSON,
		`{"description":"a","description":"b"}`: schema.InvalidJSON,
		`[]`:                                    schema.InvalidInput,
		`{}`:                                    schema.InvalidInput,
		`{"description":""}`:                    schema.InvalidInput,
		`{"description":1}`:                     schema.InvalidInput,
		`{"description":"a","inputs":{}}`:       schema.InvalidInput,
		`{"description":"a","input":[]}`:        schema.InvalidInput,
		`{"description":"a","output":"{}"}`:     schema.InvalidInput,
	} {
		if m, fault := schema.DecodeToolManifest([]byte(text)); fault == nil || fault.Kind != class {
			t.Errorf("%s: %+v, %v", text, m, fault)
		}
	}
}

package schema_test

import (
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestToolManifest checks that a manifest is decoded strictly, and that its schemas are unchanged.
func TestToolManifest(t *testing.T) {
	t.Parallel()
	m, err := schema.DecodeToolManifest([]byte(`{"name":"sum","description":"Adds.","input":{"type": "array"}}`))
	if err != nil || m.Name != "sum" || m.Description != "Adds." || string(m.Input) != `{"type": "array"}` || m.Output != nil {
		t.Errorf("%+v, %v", m, err)
	}
	for text, class := range map[string]fault.Kind{
		``:                                      fault.InvalidJSON,
		`{"description":"a"} x`:                 fault.InvalidJSON,
		`{"description":"a","description":"b"}`: fault.InvalidJSON,
		`[]`:                                    fault.InvalidInput,
		`{}`:                                    fault.InvalidInput,
		`{"description":""}`:                    fault.InvalidInput,
		`{"description":1}`:                     fault.InvalidInput,
		`{"description":"a","inputs":{}}`:       fault.InvalidInput,
		`{"description":"a","input":[]}`:        fault.InvalidInput,
		`{"description":"a","output":"{}"}`:     fault.InvalidInput,
	} {
		if m, err := schema.DecodeToolManifest([]byte(text)); err == nil || err.Kind != class {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
}

package schema_test

import (
	"math"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

func TestMarshal(t *testing.T) {
	t.Parallel()
	in := &schema.CommitDeltaInput{
		Changes:         map[string]schema.Value{"b": schema.Value(`1.50`), "a": schema.Value(`[ null ]`), "é\n": nil},
		ResourceChanges: map[string]float64{"y": 0.1, "x": -2},
	}
	const want = `{"changes":{"a":[null],"b":1.50,"é\n":null},"resource_changes":{"x":-2,"y":0.1}}`
	for range 10 { // the order of a map iteration is random
		if got, err := schema.Marshal(in); err != nil || string(got) != want {
			t.Fatalf("%s, %v, want %s", got, err, want)
		}
	}
	var none struct {
		List []string         `json:"list"`
		Map  map[string]int64 `json:"map"`
	}
	if got, err := schema.Marshal(none); err != nil || string(got) != `{"list":[],"map":{}}` { // empty, not null, as in the JSON Schemas
		t.Errorf("without values: %s, %v", got, err)
	}
	if got, err := schema.Marshal(math.Inf(1)); err == nil {
		t.Errorf("an infinite number is written as %s", got)
	}
}

// TestCompact checks that only white space between tokens is removed.
func TestCompact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		" [ 1.50,\r\n\t\"a b\\u0041\\n\\\" c\" ]\n": `[1.50,"a b\u0041\n\" c"]`,
		"{ \"b\" : 1e2 , \"a\" : [ ] }":             `{"b":1e2,"a":[]}`,
		"null":                                      "null",
	} {
		if got, err := schema.Compact(schema.Value(in)); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
	if got, err := schema.Compact(schema.Value("[1")); err == nil {
		t.Errorf("a value that does not end: %q", got)
	}
}

package schema_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestSandbox checks that a string is decoded as an object with that level, as in older journals and snapshots.
func TestSandbox(t *testing.T) {
	t.Parallel()
	typ := schema.TypeOf[schema.SpawnInput]()
	for data, want := range map[string]string{
		`"strict"`:                       "strict none",
		`{"level":"strict"}`:             "strict none",
		`{"level":"off"}`:                "off open",
		`{}`:                             "default kernel",
		`{"net":"open","read":["/a"]}`:   "default open",
		`"loose"`:                        "",
		`7`:                              "",
		`{"level":"strict","extra":1}`:   "",
		`{"level":"strict","read":"/a"}`: "",
	} {
		in, fault := typ.Decode([]byte(`{"child_agent_id":"a","command":["b"],"sandbox":` + data + `}`))
		got := ""
		if fault == nil {
			s := in.(*schema.SpawnInput).Sandbox
			got = s.Named() + " " + s.Network()
		} else if !strings.Contains(fault.Message, "sandbox") {
			t.Errorf("%s: %v", data, fault)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", data, got, want)
		}
		var s schema.Sandbox
		if err := s.UnmarshalJSON([]byte(data)); (err == nil) != (want != "") || err == nil && s.Named()+" "+s.Network() != want {
			t.Errorf("%s, of a snapshot: %+v, %v", data, s, err)
		}
	}
	if text := string(typ.AppendJSONSchema(nil)); !strings.Contains(text, `"sandbox":{"anyOf":[{"type":"string","enum":["default","strict","off"]`) {
		t.Errorf("the schema does not accept a string: %s", text)
	}
}

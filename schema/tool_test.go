package schema_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestToolNames: a tool or host that a shell, a terminal or a path would interpret is refused, and not repeated.
func TestToolNames(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{
		"Bash": true, "apply_patch": true, "mcp/my-server/read.file": true, "functions.shell:0": true, "a..b": true, "-x": true,
		"Bash$(id>PWNED)": false, "a b": false, "a;b": false, "a'b": false, "a\\nb": false, "é": false, "a//b": false, "/a": false, "a/": false, "": false, "*": false,
		"mcp/fs/*": false, "mcp/../x": false, ".": false, "a\\u200b": false, "`id`": false, "a\\\\b": false, "!": false, "~": false, "#": false, "a,b": false,
	} {
		for _, member := range []string{"tool", "host"} {
			names := map[string]string{"host": "claude", "tool": "Bash", member: name}
			m, err := schema.Decode([]byte(`{"kind":"command","type":"Host.ToolUse","data":{"host":"`+names["host"]+`","session":"s","tool":"`+names["tool"]+
				`","input":1},"metadata":{"id":"a","timestamp":1}}`), schema.OsMessage)
			if err == nil {
				_, _, err = m.Request()
			}
			if valid = valid && (member == "tool" || !strings.Contains(name, "/")); valid != (err == nil) {
				t.Errorf("%s %q: %v", member, name, err)
			}
			if err != nil && (err.Kind != fault.InvalidInput || len(name) > 3 && strings.Contains(err.Text(), name)) {
				t.Errorf("%s %q: %v, code %d", member, name, err, err.Code())
			}
		}
	}
}

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

package schema_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// dataTypes returns the types of all data of requests, replies and events.
func dataTypes() map[string]*schema.Type {
	all := map[string]*schema.Type{
		"Ipc.MessageDelivered":       schema.TypeOf[schema.MailMessage](),
		"the events of Process":      schema.TypeOf[schema.Descriptor](),
		schema.ProcessLagged:         schema.TypeOf[schema.ProcessLag](),
		"the content of an ingest":   schema.TypeOf[schema.Adoption](),
		"the outcome of a tool call": schema.TypeOf[schema.ToolCall](),
		"the manifest of a tool":     schema.TypeOf[schema.ToolDescription](),
	}
	for _, row := range schema.Syscalls() {
		all[row.Type+", input"], all[row.Type+", output"] = row.Input(), row.Output()
	}
	return all
}

// TestSecrecyIsDecided checks that each member has a tag `keep`. A member without one is withheld.
func TestSecrecyIsDecided(t *testing.T) {
	t.Parallel()
	for name, typ := range dataTypes() {
		if list := typ.Undecided(); len(list) > 0 {
			t.Errorf("%s: the secrecy of %s is not decided: tag each with keep", name, strings.Join(list, ", "))
		}
	}
}

// TestRecordsReplay checks that the record of a successful command decodes to its data with all members, except those of
// Withheld.
func TestRecordsReplay(t *testing.T) {
	t.Parallel()
	for _, row := range schema.Syscalls() {
		if row.Kind != schema.KindCommand {
			continue
		}
		for side, typ := range map[string]*schema.Type{"input": row.Input(), "output": row.Output()} {
			data := filled(schemaOf(t, typ))
			sent, err := typ.Decode([]byte(data))
			if err != nil {
				t.Fatalf("%s, %s %s: %v", row.Type, side, data, err)
			}
			record := typ.Redact([]byte(data), sent, false)
			kept, err := typ.Decode(record)
			if same := err == nil && reflect.DeepEqual(sent, kept); same != (len(typ.Withheld()) == 0) {
				t.Errorf("%s, %s: withheld %q, and the journal has %s of %s: %v", row.Type, side, typ.Withheld(), record, data, err)
			}
			if side == "output" && row.Outcome != "" && typ.Withheld() != nil {
				t.Errorf("%s ends with an EffectEnd, which stores its whole outcome, but withholds %q of it", row.Type, typ.Withheld())
			}
		}
	}
}

// filled returns a value of a JSON Schema with all members, each with content that a filter removes.
func filled(s map[string]any) string {
	if forms, ok := s["anyOf"].([]any); ok && s["type"] == nil { // otherwise anyOf has the required members
		return filled(forms[len(forms)-1].(map[string]any))
	}
	typ := s["type"]
	if list, ok := typ.([]any); ok {
		typ = list[0]
	}
	switch typ {
	case "string":
		if words, ok := s["enum"].([]any); ok {
			return fmt.Sprintf("%q", words[0])
		}
		return `"https://u:p@h.example/"`
	case "integer", "number":
		return fmt.Sprint(int64(max(1, s["minimum"].(float64))))
	case "boolean":
		return "true"
	case "array":
		return "[" + filled(s["items"].(map[string]any)) + "]"
	case "object":
		properties, ok := s["properties"].(map[string]any)
		if !ok {
			return `{"authorization":` + filled(s["additionalProperties"].(map[string]any)) + `}`
		}
		var members []string
		for name, inner := range properties {
			members = append(members, fmt.Sprintf("%q:%s", name, filled(inner.(map[string]any))))
		}
		slices.Sort(members)
		return "{" + strings.Join(members, ",") + "}"
	}
	return `{"any":1}`
}

// TestAbsentIsNotNull checks that a member that may be any value differs if it is absent or null.
func TestAbsentIsNotNull(t *testing.T) {
	t.Parallel()
	type maybe struct {
		Value schema.Value `json:"value,omitzero" keep:"always"`
	}
	for data, absent := range map[string]bool{`{}`: true, `{"value":null}`: false, `{"value":0}`: false} {
		in, err := schema.TypeOf[maybe]().Decode([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		var read maybe
		testkit.Must(t, json.Unmarshal([]byte(data), &read))
		for _, got := range []*maybe{in.(*maybe), &read} {
			written, err := schema.Marshal(got)
			if err != nil || string(written) != data || (got.Value == nil) != absent {
				t.Errorf("%s: read %q, written %s, %v", data, got.Value, written, err)
			}
		}
	}
}

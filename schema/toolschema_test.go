package schema_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestToolSchema checks that the schema has neither the members of Target nor references, but has the process that a call is about, and
// that a member with an alternative reference is required.
func TestToolSchema(t *testing.T) {
	t.Parallel()
	shape := func(typ string) (members, required []string) {
		t.Helper()
		row, _ := schema.Lookup(typ)
		var s struct {
			Type       string
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(row.ToolSchema(), &s); err != nil || s.Type != "object" {
			t.Fatalf("%s: %s %v", typ, row.ToolSchema(), err)
		}
		for name := range s.Properties {
			members = append(members, name)
		}
		slices.Sort(members)
		return members, s.Required
	}
	for _, test := range []struct{ typ, members, required string }{
		{"Memory.Set", "key value", "key value"},
		{"Memory.Get", "key", "key"},
		{"Syscall.SendMsg", "expires_at_tick intent payload priority receiver_kernel receiver_pid", "receiver_pid payload"},
		{"Capability.Revoke", "pid", "pid"},
		{"Syscall.List", "follow", ""},
	} {
		members, required := shape(test.typ)
		if got := strings.Join(members, " "); got != test.members {
			t.Errorf("%s takes %q, want %q", test.typ, got, test.members)
		}
		if got := strings.Join(required, " "); got != test.required {
			t.Errorf("%s requires %q, want %q", test.typ, got, test.required)
		}
	}
	for _, row := range schema.Syscalls() {
		if row.Internal {
			continue
		}
		members, _ := shape(row.Type)
		if slices.ContainsFunc(members, func(name string) bool { return strings.HasSuffix(name, "Ref") || name == "tick" }) {
			t.Errorf("%s takes %q", row.Type, members)
		}
	}
}

package kernel_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// told are the members whose value an error may repeat, since it names something.
func told() []string {
	return []string{"key", "cursor", "name", "syscall", "resource_id", "resources", "allowed_syscalls", "capabilities", "resource_quotas", "agent_id", "agent", "uri", "base"}
}

// TestErrorsRepeatNoValue puts a value into each member of each syscall, in forms that the member does not accept and in
// those that it might. It checks that no error repeats the value, which may be a secret. Only the name of something is quoted
// (MESSAGE 8.2, EVENT 8.2).
func TestErrorsRepeatNoValue(t *testing.T) {
	t.Parallel()
	const mark = "Hidden7Words"
	forms := []string{`"Hidden7Words"`, `["Hidden7Words"]`, `{"a":"Hidden7Words"}`, `-770077007700.7`, `7700770077007700770077`}
	c := start(t).wire(t, "kernel.sock")
	errors := 0
	for _, row := range schema.Syscalls() {
		if row.Internal || row.Type == "Syscall.Shutdown" {
			continue
		}
		var input struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		}
		if err := json.Unmarshal(row.Input().AppendJSONSchema(nil), &input); err != nil {
			t.Fatalf("%s: %v", row.Type, err)
		}
		for member := range input.Properties {
			if slices.Contains(told(), member) || member == "wait_ms" {
				continue
			}
			for _, form := range forms {
				data := map[string]json.RawMessage{member: json.RawMessage(form)}
				for _, other := range input.Required {
					if other != member {
						data[other] = json.RawMessage(`"vault/k"`)
					}
				}
				text, err := json.Marshal(data)
				testkit.Must(t, err)
				c.send(fmt.Sprintf(`{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"m","timestamp":0}}`+"\n", row.Kind, row.Type, text))
				c.send(fmt.Sprintf(`{"type":%q,"name":%q,"payload":%s}`+"\n", row.Kind, row.Type, text))
				for range 2 {
					m := c.next()
					if m.Kind != schema.KindError {
						continue
					}
					errors++
					if s := string(m.Data); strings.Contains(s, mark) || strings.Contains(s, "77007700") {
						t.Errorf("%s %s: %s", row.Type, text, s)
					}
				}
			}
		}
	}
	if errors < 100 {
		t.Errorf("only %d errors: the test does not cover the values", errors)
	}
}

package capability_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestRestoreAfterAChange: a token that was granted, revoked, stripped, restored or had expired and was taken after an undo
// was decided is not restored; a change of another token is none.
func TestRestoreAfterAChange(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		typ, data string
		refused   bool
	}{
		"nothing":          {refused: false},
		"granted":          {"Capability.Grant", `{"pid":2,"allowed_syscalls":["*"]}`, true},
		"revoked":          {"Capability.Revoke", `{"pid":2}`, true},
		"taken, expired":   {"Capability.RevokeExpired", `{}`, true},
		"stripped":         {"Capability.Strip", `{"pids":[2]}`, true},
		"restored":         {"Capability.Restore", `{"undoes":1,"by":"u","pid":2,"token":{"pid":2,"granted_by":0,"allowed_syscalls":[],"resource_quotas":{},"expires_at_tick":null}}`, true},
		"removed by undo":  {"Capability.Restore", `{"undoes":1,"by":"u","pid":2}`, true},
		"granted, another": {"Capability.Grant", `{"pid":4,"allowed_syscalls":["*"]}`, false},
		"revoked, another": {"Capability.Revoke", `{"pid":4}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry()
			for pid, expires := range map[int64]string{2: "3", 4: "null"} {
				_, err := run(t, r, operator, "Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["*"],"expires_at_tick":%s}`, pid, expires))
				testkit.Must(t, err)
			}
			r.Publish()
			undo := fmt.Sprintf(`{"undoes":1,"by":"u","pid":2,"since":%d}`, r.Changes())
			later := caller{tick: 9}
			if tc.typ != "" {
				_, err := run(t, r, later, tc.typ, tc.data)
				testkit.Must(t, err)
			}
			_, err := run(t, r, later, "Capability.Restore", undo)
			if tc.refused && !errors.Is(err, fault.UndoOvertaken) || !tc.refused && err != nil {
				t.Errorf("restored: %v, want it refused: %v", err, tc.refused)
			}
		})
	}
}

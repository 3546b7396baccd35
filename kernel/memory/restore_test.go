package memory_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/schema/fault"
)

// TestRestoreAfterAChange: a key that was set, deleted or restored after an undo was decided is not restored; a change of
// another key, or of the same key of another origin, is none.
func TestRestoreAfterAChange(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		origin, typ, data string
		refused           bool
	}{
		"nothing":           {refused: false},
		"set":               {home, "Memory.Set", `{"key":"/a","value":2}`, true},
		"compared and set":  {home, "Memory.CompareAndSet", `{"key":"a","expected":1,"value":2}`, true},
		"deleted":           {home, "Memory.Delete", `{"key":"a"}`, true},
		"the last restored": {home, "Memory.Restore", `{"undoes":1,"by":"u","key":"a","value":0}`, true},
		"the last removed":  {home, "Memory.Restore", `{"undoes":1,"by":"u","key":"a"}`, true},
		"another key":       {home, "Memory.Delete", `{"key":"b"}`, false},
		"another origin":    {other, "Memory.Delete", `{"key":"a"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDomain(t, nil)
			for _, origin := range []string{home, other} {
				for _, key := range []string{"a", "b"} {
					call := request(t, 1, origin, "Memory.Set", fmt.Sprintf(`{"key":%q,"value":1}`, key))
					d.Apply(call)
				}
			}
			d.Publish()
			undo := fmt.Sprintf(`{"undoes":1,"by":"u","key":"a","value":0,"since":%d}`, d.Changes())
			if tc.typ != "" {
				if _, err := run(t, d, 1, tc.origin, tc.typ, tc.data); err != nil {
					t.Fatal(err)
				}
			}
			_, err := run(t, d, 1, home, "Memory.Restore", undo)
			if tc.refused && !errors.Is(err, fault.MemoryChanged) || !tc.refused && err != nil {
				t.Errorf("restored: %v, want it refused: %v", err, tc.refused)
			}
		})
	}
}

package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestPayloadsOfAPage reads a page of the audit log whose second entry is longer than the journal is read at once: the
// first one still shows what its own call returned.
func TestPayloadsOfAPage(t *testing.T) {
	t.Parallel()
	for _, length := range []int{1, 40, 300, 5000} {
		c := start(t).dial(t)
		var want []string
		for i, text := range []string{strings.Repeat("a", length), strings.Repeat("b", 8000)} {
			a := c.ask("Syscall.Echo", fmt.Sprintf(`{"message":%q}`, text))
			want = append(want, string(a.Data))
			if a.Metadata.Kernel.Seq != int64(i+1) {
				t.Fatalf("entry %d of a new journal has seq %d", i, a.Metadata.Kernel.Seq)
			}
		}
		a := c.ask("Audit.Log", `{"limit":2}`)
		var page struct {
			Entries []struct {
				Payload json.RawMessage `json:"payload"`
			} `json:"entries"`
		}
		if err := json.Unmarshal(a.Data, &page); err != nil || a.Kind != "reply" || len(page.Entries) != 2 {
			t.Errorf("after a message of %d bytes: %s %.200s", length, a.Kind, a.Data)
			continue
		}
		for i, e := range page.Entries {
			if string(e.Payload) != want[i] {
				t.Errorf("after a message of %d bytes: entry %d shows %.80s, want %.80s", length, i+1, e.Payload, want[i])
			}
		}
	}
}

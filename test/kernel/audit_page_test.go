package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestPayloadsOfAPage reads a page of the audit log whose second entry is longer than one read of the journal: the first
// entry still shows the result of its own call.
func TestPayloadsOfAPage(t *testing.T) {
	t.Parallel()
	for _, length := range []int{1, 40, 300, 5000} {
		c := start(t).dial(t)
		var want []string
		var first int64
		for i, text := range []string{strings.Repeat("a", length), strings.Repeat("b", 8000)} {
			a := c.ask("Syscall.Echo", fmt.Sprintf(`{"message":%q}`, text))
			want = append(want, string(a.Data))
			if i == 0 {
				first = a.Metadata.Kernel.Seq
			} else if a.Metadata.Kernel.Seq != first+1 {
				t.Fatalf("entry %d follows entry %d", a.Metadata.Kernel.Seq, first)
			}
		}
		a := c.ask("Audit.Log", fmt.Sprintf(`{"since_seq":%d,"limit":2}`, first-1))
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

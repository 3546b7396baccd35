package memory_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/kernel/domaintest"
)

// TestOriginIsOpaque: origins are compared as text and never parsed: two spellings of one address are two origins
// (ABI 6.3).
func TestOriginIsOpaque(t *testing.T) {
	t.Parallel()
	d := newDomain(t, domaintest.Table{})
	origins := []string{"", "a", "A", "a ", "https://a.example/", "https://a.example", "https://A.example/", "https://a.example:443/", "https://a.example/#b", "%61"}
	for i, origin := range origins {
		if got, err := run(t, d, 1, origin, "Memory.Set", fmt.Sprintf(`{"key":"k","value":%d}`, i)); err != nil {
			t.Fatalf("%q: %s, %v", origin, got, err)
		}
	}
	for i, origin := range origins {
		if got, err := run(t, d, 1, origin, "Memory.Get", `{"key":"k"}`); err != nil || got != fmt.Sprint(i) {
			t.Errorf("%q: %s, %v, want %d", origin, got, err, i)
		}
	}
}

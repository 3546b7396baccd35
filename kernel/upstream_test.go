package kernel_test

import (
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestUpstreams: an upstream is granted by its name or with all upstreams, never by *; and nobody grants what he has not.
func TestUpstreams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		own    string
		allows bool // Upstream:a
		covers bool // Upstream:*
	}{
		{"Upstream:a", true, false},
		{"Upstream:*", true, true},
		{"Upstream:b", false, false},
		{"*", false, false},
		{"Upstream", false, false},
	} {
		own := token(1, nil, new(int64(5)), tt.own)
		if own.AllowsUpstream("a", 5) != tt.allows || own.AllowsUpstream("a", 6) {
			t.Errorf("%s allows Upstream:a: %v", tt.own, !tt.allows)
		}
		for pattern, want := range map[string]bool{"Upstream:a": tt.allows, "Upstream:*": tt.covers} {
			if got := own.Covers(&token(2, nil, new(int64(5)), pattern).Granted.TokenGrant, 5) == nil; got != want {
				t.Errorf("%s covers %s: %v", tt.own, pattern, got)
			}
		}
	}
	for pattern, good := range map[string]bool{
		"Upstream:a": true, "Upstream:open-ai2": true, "Upstream:*": true, "Upstream:": false, "Upstream:A": false, "Upstream:a*": false, "Upstream:a/b": false,
	} {
		if _, err := kernel.NewGrant(&schema.GrantInput{PID: 1, AllowedSyscalls: []string{pattern}}, 0, nil); (err == nil) != good {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

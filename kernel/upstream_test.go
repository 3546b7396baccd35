package kernel_test

import (
	"slices"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestReach: the hosts and upstreams of a token hold as long as its grant and the granter's do. * includes no upstream.
func TestReach(t *testing.T) {
	t.Parallel()
	token := func(pid, by int64, granter *kernel.Token, until *int64, host string, allowed ...string) *kernel.Token {
		return &kernel.Token{Granter: granter, Granted: schema.Token{PID: pid, TokenGrant: schema.TokenGrant{
			GrantedBy: by, AllowedSyscalls: allowed, ExpiresAtTick: until, HTTP: &schema.HTTPGrant{Hosts: []string{host}},
		}}}
	}
	parent := token(1, 0, nil, new(int64(5)), "*.a.test", "Upstream:*")
	tests := []struct {
		name     string
		token    *kernel.Token
		tick     int64
		hosts    []string
		upstream bool
	}{
		{"none", nil, 0, nil, false},
		{"operator's", parent, 5, []string{"*.a.test"}, true},
		{"expired", parent, 6, nil, false},
		{"everything", token(2, 0, nil, nil, "*", "*"), 0, []string{"*"}, false},
		{"another", token(2, 0, nil, nil, "x.test", "Upstream:b"), 0, []string{"x.test"}, false},
		{"cut down", token(2, 1, parent, nil, "*", "Upstream:a"), 5, []string{"*.a.test"}, true},
		{"with its granter", token(2, 1, parent, nil, "*", "Upstream:a"), 6, nil, false},
		{"without its granter", token(2, 1, nil, nil, "*", "Upstream:a"), 0, nil, false},
	}
	for _, tt := range tests {
		if got := tt.token.Hosts(tt.tick); !slices.Equal(got, tt.hosts) {
			t.Errorf("%s: hosts %v", tt.name, got)
		}
		if got := tt.token.AllowsUpstream("a", tt.tick); got != tt.upstream {
			t.Errorf("%s: upstream %v", tt.name, got)
		}
	}
}

package kernel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// by is a token of pid by an agent whose own token is granter; nil: that agent has none.
func by(granter *kernel.Token, from int64, t *kernel.Token) *kernel.Token {
	t.Granted.GrantedBy, t.Granter = from, granter
	return t
}

// and adds an operator's grant to a token.
func and(t *kernel.Token, operator *schema.TokenGrant) *kernel.Token {
	t.Granted = kernel.Beside(t.PID(), &t.Granted.TokenGrant, operator)
	return t
}

// TestChain: a token allows what all tokens above it allow, and what the operator granted; the advice names the token
// that lacks the grant.
func TestChain(t *testing.T) {
	t.Parallel()
	gpu := func(units float64) map[string]float64 { return map[string]float64{"gpu": units} }
	top := token(1, gpu(4), nil, "Memory.*", "SYS_ALLOC")
	narrow := by(top, 1, token(2, gpu(9), nil, "Memory.Get"))
	late := by(token(1, nil, new(int64(5)), "*"), 1, token(2, nil, nil, "*"))
	cut := schema.Effective{AllowedSyscalls: []string{}, ResourceQuotas: map[string]float64{}}
	for _, tt := range []struct {
		name  string
		token *kernel.Token
		typ   string
		want  string // the denial, empty: allowed
		quota float64
		left  schema.Effective
	}{
		{
			"all of it is the granter's too", by(top, 1, token(2, gpu(2), nil, "Memory.Set")), "Memory.Set", "", 2,
			schema.Effective{AllowedSyscalls: []string{"Memory.Set"}, ResourceQuotas: gpu(2)},
		},
		{
			"the granter has less", by(top, 1, token(2, gpu(8), new(int64(9)), "*")), "Clock.Get",
			`pid 2 may not call Clock.Get: pid 1, which granted it, may not do so itself: allow it too with "pwos cap grant 1 --add Clock.Get"`, 4,
			schema.Effective{AllowedSyscalls: []string{"Memory.*", "SYS_ALLOC"}, ResourceQuotas: gpu(4), ExpiresAtTick: new(int64(9))},
		},
		{
			"a granter further up has less", by(by(narrow, 2, token(3, gpu(9), nil, "*")), 3, token(4, gpu(5), nil, "*")), "Memory.Set",
			`pid 4 may not call Memory.Set: pid 2, which granted it, may not do so itself: allow it too with "pwos cap grant 2 --add Memory.Set"`, 4,
			schema.Effective{AllowedSyscalls: []string{"Memory.Get"}, ResourceQuotas: gpu(4)},
		},
		{
			"its own lacks it", by(top, 1, token(2, nil, nil, "Memory.Get")), "Clock.Get",
			`pid 2 may not call Clock.Get: allow it too with "pwos cap grant 2 --add Clock.Get"`, 0,
			schema.Effective{AllowedSyscalls: []string{"Memory.Get"}, ResourceQuotas: map[string]float64{}},
		},
		{
			"the granter has none any more", by(nil, 1, token(2, gpu(2), nil, "*")), "Memory.Set",
			`pid 2 may not call Memory.Set: pid 1, which granted it, may not do so itself: allow it too with "pwos cap grant 1 --add Memory.Set"`, 0, cut,
		},
		{
			"the granter's has expired", late, "Memory.Set",
			`pid 2 may not call Memory.Set: the token of pid 1, which granted it, expired after tick 5, and it is tick 6: allow it again with "pwos cap grant 1 --add Memory.Set --ttl 1h"`, 0,
			schema.Effective{AllowedSyscalls: []string{}, ResourceQuotas: map[string]float64{}, ExpiresAtTick: new(int64(5))},
		},
		{
			"the operator has added it", and(by(nil, 1, token(2, gpu(2), nil, "*")), &token(2, gpu(3), nil, "Clock.Get").Granted.TokenGrant), "Clock.Get", "", 3,
			schema.Effective{AllowedSyscalls: []string{"Clock.Get"}, ResourceQuotas: gpu(3)},
		},
		{
			"the operator has added something else", and(by(nil, 1, token(2, nil, nil, "*")), &token(2, nil, nil, "Clock.Get").Granted.TokenGrant), "Memory.Set",
			`pid 2 may not call Memory.Set: pid 1, which granted it, may not do so itself: allow it too with "pwos cap grant 1 --add Memory.Set"`, 0,
			schema.Effective{AllowedSyscalls: []string{"Clock.Get"}, ResourceQuotas: map[string]float64{}},
		},
		{
			"what has to be named is not the granter's by *", by(token(1, nil, nil, "*"), 1, token(2, nil, nil, "Crypto.Open", "Crypto.Seal")), "Crypto.Open",
			`pid 2 may not call Crypto.Open, which has to be granted by its name, as no pattern includes it: pid 1, which granted it, may not do so itself: allow it too with "pwos cap grant 1 --add Crypto.Open"`, 0,
			schema.Effective{AllowedSyscalls: []string{"Crypto.Seal"}, ResourceQuotas: map[string]float64{}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := kernel.Authorize(nil, tt.token.PID(), tt.token, lookup(t, tt.typ), 6)
			if (err == nil) != (tt.want == "") || (err != nil && err.Text() != tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if got := tt.token.Quota("gpu", 6); got != tt.quota {
				t.Errorf("quota %v, want %v", got, tt.quota)
			}
			if diff := cmp.Diff(tt.left, tt.token.Effective(6)); diff != "" {
				t.Errorf("effective (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNamedPatterns: a pattern with a word is included in itself, in a path above it, and for a user-space syscall in
// Syscall.Call.
func TestNamedPatterns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		own, other string
		want       bool
	}{
		{"Call:mcp/fs/read", "Call:mcp/fs/read", true},
		{"Call:mcp/fs/*", "Call:mcp/fs/read", true},
		{"Call:mcp/*", "Call:mcp/fs/*", true},
		{"Call:*", "Call:mcp/fs/*", true},
		{"Call:mcp/fs/*", "Call:mcp/*", false},
		{"Call:mcp/fs/*", "Call:mcp/fsx", false},
		{"Syscall.Call", "Call:mcp/*", true},
		{"Syscall.*", "Call:mcp/*", true},
		{"*", "Call:mcp/*", true},
		{"Call:*", "Syscall.Call", false},
		{"Upstream:openai", "Upstream:openai", true},
		{"Upstream:openai", "Upstream:other", false},
		{"Upstream:*", "Upstream:other", true},
		{"*", "Upstream:openai", false}, // its credential needs a grant by name
		{"Call:*", "Upstream:openai", false},
	} {
		own := token(1, nil, nil, tt.own)
		if got := own.AllowsNamed(tt.other, 0); got != tt.want {
			t.Errorf("%s allows %s: %v", tt.own, tt.other, got)
		}
		if got := own.Covers(&token(2, nil, nil, tt.other).Granted.TokenGrant, 0) == nil; got != tt.want {
			t.Errorf("%s covers %s: %v", tt.own, tt.other, got)
		}
		left := by(own, 1, token(2, nil, nil, tt.other)).Effective(0).AllowedSyscalls
		if tt.want != cmp.Equal(left, []string{tt.other}) {
			t.Errorf("%s granted by %s leaves %v", tt.other, tt.own, left)
		}
	}
	for _, pattern := range []string{"Call:", "Call:/a", "Call:a//b", "Call:a*", "Call:*/a", "Upstream:", "Other:a", "call:a"} {
		if _, err := kernel.NewGrant(&schema.GrantInput{PID: 1, AllowedSyscalls: []string{pattern}}, 0, nil); err == nil {
			t.Errorf("%s is granted", pattern)
		}
	}
}

// TestFetchChain: a process may fetch what all grants above it allow.
func TestFetchChain(t *testing.T) {
	t.Parallel()
	http := func(plain, open bool, hosts ...string) *schema.HTTPGrant {
		return &schema.HTTPGrant{Hosts: hosts, Plain: plain, Open: open}
	}
	fetching := func(pid int64, g *schema.HTTPGrant) *kernel.Token {
		t := token(pid, nil, nil)
		t.Granted.HTTP = g
		return t
	}
	for _, tt := range []struct {
		own, granted *schema.HTTPGrant
		want         []schema.HTTPGrant
	}{
		{http(false, false, "*.example.com"), http(false, false, "api.example.com", "example.com"), []schema.HTTPGrant{*http(false, false, "api.example.com")}},
		{http(false, false, "api.example.com"), http(false, false, "*"), []schema.HTTPGrant{*http(false, false, "api.example.com")}},
		{http(false, false, "*"), http(false, false, "*", "192.0.2.1", "[::1]"), []schema.HTTPGrant{*http(false, false, "*")}},
		{http(true, false, "a.test"), http(true, true, "a.test"), []schema.HTTPGrant{*http(true, false, "a.test")}},
		{http(false, true, "a.test"), http(true, true, "a.test"), []schema.HTTPGrant{*http(false, true, "a.test")}},
		{http(false, false, "a.test:*"), http(false, false, "*.test:8443", "a.test"), []schema.HTTPGrant{*http(false, false, "a.test", "a.test:8443")}},
		{http(false, false, "a.test:443"), http(false, false, "a.test"), []schema.HTTPGrant{*http(false, false, "a.test:443")}},
		{http(false, false, "*.test"), http(false, false, "a.test:443"), []schema.HTTPGrant{*http(false, false, "a.test:443")}},
		{http(true, false, "a.test:443"), http(true, false, "a.test"), nil},
		{nil, http(false, false, "a.test"), nil},
	} {
		child := by(fetching(1, tt.own), 1, fetching(2, tt.granted))
		if diff := cmp.Diff(tt.want, child.Fetch(0)); diff != "" {
			t.Errorf("%v granted %v (-want +got):\n%s", tt.own, tt.granted, diff)
		}
	}
	orphan := by(nil, 1, fetching(2, http(false, false, "a.test")))
	if got := kernel.NoHost(2, orphan, 0).Text(); got != `pid 2 may fetch from no host: allow one with "pwos cap grant 1 --add Http.Fetch --host HOST"` {
		t.Error(got)
	}
}

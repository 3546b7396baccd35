package kernel_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func token(pid int64, quotas map[string]float64, expires *int64, allowed ...string) *kernel.Token {
	return &kernel.Token{Granted: schema.Token{PID: pid, TokenGrant: schema.TokenGrant{AllowedSyscalls: allowed, ResourceQuotas: quotas, ExpiresAtTick: expires}}}
}

func lookup(t testing.TB, typ string) *schema.Syscall {
	t.Helper()
	row, ok := schema.Lookup(typ)
	if !ok {
		t.Fatalf("no syscall %s", typ)
	}
	return row
}

func TestExpired(t *testing.T) {
	t.Parallel()
	tests := []struct {
		expires *int64
		tick    int64
		want    bool
	}{
		{nil, 0, false},
		{nil, 1 << 52, false},
		{new(int64(0)), 0, false},
		{new(int64(0)), 1, true},
		{new(int64(5)), 4, false},
		{new(int64(5)), 5, false},
		{new(int64(5)), 6, true},
	}
	for _, tt := range tests {
		if got := token(1, nil, tt.expires).Expired(tt.tick); got != tt.want {
			t.Errorf("expires %v, tick %d: expired %v", tt.expires, tt.tick, got)
		}
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, typ string
		want         bool
	}{
		{"*", "Memory.Set", true},
		{"*", "Syscall.Alloc", true},
		{"Memory.Set", "Memory.Set", true},
		{"Memory.Set", "Memory.Get", false},
		{"Memory.*", "Memory.Get", true},
		{"Memory.*", "Syscall.Alloc", false},
		{"Mem.*", "Memory.Get", false},
		{"SYS_ALLOC", "Syscall.Alloc", true},
		{"SYS_ALLOC", "Syscall.Release", false},
		{"Syscall.Alloc", "Syscall.Alloc", true},
		{"Syscall.*", "Syscall.Alloc", true},
		{"memory.set", "Memory.Set", false},
		{"", "Memory.Set", false}, // a row without a code has no code to be named by
		{".*", "Memory.Set", false},
		{"*", "Crypto.Open", false}, // it must be named
		{"Crypto.*", "Crypto.Open", false},
		{"Crypto.Open", "Crypto.Open", true},
		{"Crypto.*", "Crypto.Seal", true},
	}
	for _, tt := range tests {
		if got := token(1, nil, nil, "SYS_QUERY", tt.pattern).Allows(lookup(t, tt.typ), 0); got != tt.want {
			t.Errorf("%q allows %s: %v", tt.pattern, tt.typ, got)
		}
	}
	if token(1, nil, nil).Allows(lookup(t, "Syscall.Ping"), 0) {
		t.Error("an empty token allows something")
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Syscall.Alloc": "Syscall.Alloc", "SYS_ALLOC": "Syscall.Alloc", "Memory.Set": "Memory.Set",
		"Capability.Endow": "", "": "", "SYS_NOTHING": "", "Memory.*": "", "*": "",
	} {
		row, ok := kernel.Named(name)
		if ok != (want != "") || (ok && row.Type != want) {
			t.Errorf("%q names %v, %v", name, row, ok)
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	const pid = 7
	own := func(allowed ...string) *kernel.Token { return token(pid, nil, nil, allowed...) }
	gpu := func(units float64) map[string]float64 { return map[string]float64{"gpu": units} }
	tests := []struct {
		name       string
		own, other *kernel.Token
		want       string // the error, empty if it is covered
	}{
		{"the same", own("Memory.Set"), own("Memory.Set"), ""},
		{"nothing", own(), own(), ""},
		{"by *", own("*"), own("*", "Memory.*", "SYS_ALLOC", "Memory.Set"), ""},
		{"by domain", own("Memory.*"), own("Memory.Set", "Memory.*"), ""},
		{"code by type", own("Syscall.Alloc"), own("SYS_ALLOC"), ""},
		{"type by code", own("SYS_ALLOC"), own("Syscall.Alloc"), ""},
		{"what has to be named, by its name", own("Crypto.Open"), own("Crypto.Open"), ""},
		{"what has to be named, by *", own("*"), own("Crypto.Open"), "pid 7 may not grant Crypto.Open: it does not hold it itself: grant less, or have the operator grant it"},
		{"what has to be named, by domain", own("Crypto.*"), own("Crypto.Open"), "pid 7 may not grant Crypto.Open: it does not hold it itself: grant less, or have the operator grant it"},
		{"the rest of its domain", own("*"), own("Crypto.*", "Crypto.Seal"), ""},
		{"everyone's", own(), own("Syscall.Ping"), ""},
		{"another type", own("Memory.Get"), own("Memory.Set"), "pid 7 may not grant Memory.Set: it does not hold it itself: grant less, or have the operator grant it"},
		{"wider", own("Memory.Get"), own("Memory.*"), "pid 7 may not grant Memory.*: it does not hold it itself: grant less, or have the operator grant it"},
		{"widest", own("Memory.*", "Syscall.*"), own("*"), "pid 7 may not grant *: it does not hold it itself: grant less, or have the operator grant it"},
		{"all of a domain but not the domain", own("Memory.Get", "Memory.Set", "Memory.Delete", "Memory.List"), own("Memory.*"), "pid 7 may not grant Memory.*: it does not hold it itself: grant less, or have the operator grant it"},
		{"a name that is gone", own("*"), own("Memory.Gone"), ""},
		{"a name that is gone, not held", own("Ipc.*"), own("Memory.Gone"), "pid 7 may not grant Memory.Gone: it does not hold it itself: grant less, or have the operator grant it"},
		{"a registered syscall, by its name", own("Stripe.Charge"), own("Stripe.Charge"), ""},
		{"a registered syscall, by all", own("*"), own("Stripe.Charge"), "pid 7 may not grant Stripe.Charge: it does not hold it itself: grant less, or have the operator grant it"},

		{"quota", token(pid, gpu(2), nil), token(8, gpu(2), nil), ""},
		{"quota of nothing", token(pid, nil, nil), token(8, gpu(0), nil), ""},
		{"larger quota", token(pid, gpu(2), nil), token(8, gpu(2.5), nil), "pid 7 may not grant a quota of 2.5 of gpu: its own is 2: grant less, or have the operator grant it"},
		{"huge quota", token(pid, gpu(1e6), nil), token(8, gpu(1e7), nil), "pid 7 may not grant a quota of 10000000 of gpu: its own is 1000000: grant less, or have the operator grant it"},
		{"quota not held", token(pid, nil, nil), token(8, gpu(1), nil), "pid 7 may not grant a quota of 1 of gpu: its own is 0: grant less, or have the operator grant it"},
		{
			"first of several", token(pid, nil, nil), token(8, map[string]float64{"b": 1, "a": 1, "c": 1}, nil),
			"pid 7 may not grant a quota of 1 of a: its own is 0: grant less, or have the operator grant it",
		},

		{"sooner", token(pid, nil, new(int64(9))), token(8, nil, new(int64(8))), ""},
		{"as late", token(pid, nil, new(int64(9))), token(8, nil, new(int64(9))), ""},
		{"bounded by the unbounded", token(pid, nil, nil), token(8, nil, new(int64(9))), ""},
		{
			"later", token(pid, nil, new(int64(9))), token(8, nil, new(int64(10))),
			"pid 7 may not grant beyond tick 9, the last of its own token: set expires_at_tick to that or less",
		},
		{
			"forever", token(pid, nil, new(int64(9))), token(8, nil, nil),
			"pid 7 may not grant beyond tick 9, the last of its own token: set expires_at_tick to that or less",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.own.Covers(&tt.other.Granted.TokenGrant, 0)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || err.Text() != tt.want || err.Kind != fault.Forbidden):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// patterns are the elements of grants.
func patterns() *rapid.Generator[[]string] {
	all := []string{"*"}
	for _, row := range schema.Syscalls() {
		all = append(all, row.Type, row.Type[:slices.Index([]byte(row.Type), '.')]+".*")
		if row.Code != "" {
			all = append(all, row.Code)
		}
	}
	return rapid.SliceOfN(rapid.SampledFrom(all), 0, 6)
}

// TestCoversIsASubset: the holder of a covered token can do nothing that the holder of the covering one cannot, at
// any tick.
func TestCoversIsASubset(t *testing.T) {
	t.Parallel()
	amount := rapid.SampledFrom([]float64{0, 0.1, 1, 200})
	quotas := rapid.MapOf(rapid.SampledFrom([]string{"cpu", "gpu"}), amount)
	expiry := rapid.Ptr(rapid.Int64Range(0, 4), true)
	covered := 0
	rapid.Check(t, func(t *rapid.T) {
		own := token(1, quotas.Draw(t, "own quotas"), expiry.Draw(t, "own expiry"), patterns().Draw(t, "own")...)
		other := token(2, quotas.Draw(t, "quotas"), expiry.Draw(t, "expiry"), patterns().Draw(t, "other")...)
		if rapid.Bool().Draw(t, "likely") { // two random tokens rarely match
			held := &other.Granted.AllowedSyscalls
			*held = slices.DeleteFunc(*held, func(p string) bool { return own.Covers(&token(2, nil, own.Last(), p).Granted.TokenGrant, 0) != nil })
		}
		if own.Covers(&other.Granted.TokenGrant, 0) != nil {
			return
		}
		covered++
		for tick := range int64(6) {
			for _, row := range schema.Syscalls() {
				if kernel.Authorize(nil, 1, other, row, tick) == nil && kernel.Authorize(nil, 1, own, row, tick) != nil {
					t.Fatalf("%v covers %v, and only the covered one may call %s at tick %d", own, other, row.Type, tick)
				}
			}
		}
		for _, resource := range []string{"cpu", "gpu"} {
			if other.Quota(resource, 0) > own.Quota(resource, 0) {
				t.Fatalf("%v covers %v, which has more %s", own, other, resource)
			}
		}
	})
	if covered == 0 {
		t.Error("no token covers another: the test shows nothing")
	}
}

// TestTokenCut: what is left of a grant after a cut is what both have, and its holder may pass it on.
func TestTokenCut(t *testing.T) {
	t.Parallel()
	own := token(1, map[string]float64{"cpu": 2}, new(int64(9)), "Memory.*", "Tool:claude/*")
	own.Granted.HTTP = &schema.HTTPGrant{Hosts: []string{"a.test", "*.b.test"}}
	asked := &schema.SpawnCapability{
		AllowedSyscalls: []string{"Tool:codex/*", "Memory.Get", "Clock.Get", "Tool:claude/Bash"}, ResourceQuotas: map[string]float64{"cpu": 5, "gpu": 1},
		HTTP: &schema.HTTPGrant{Hosts: []string{"c.test", "x.b.test", "a.test"}, Plain: true}, Budget: &schema.BudgetGrant{Calls: new(int64(3))},
	}
	want := &schema.SpawnCapability{
		AllowedSyscalls: []string{"Memory.Get", "Tool:claude/Bash"}, ResourceQuotas: map[string]float64{"cpu": 2}, ExpiresAtTick: new(int64(9)),
		HTTP: &schema.HTTPGrant{Hosts: []string{"a.test", "x.b.test"}}, Budget: asked.Budget,
	}
	got := own.Cut(asked, 0)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := own.Covers(&schema.TokenGrant{AllowedSyscalls: got.AllowedSyscalls, ResourceQuotas: got.ResourceQuotas, ExpiresAtTick: got.ExpiresAtTick, HTTP: got.HTTP}, 0); err != nil {
		t.Errorf("its holder may not grant what is left: %v", err)
	}
}

func BenchmarkAllows(b *testing.B) {
	g, err := kernel.NewGrant(kernel.DefaultGrant(1, nil), 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	t := &kernel.Token{Granted: schema.Token{PID: 1, TokenGrant: *g}}
	row := lookup(b, "Memory.Set")
	b.ReportAllocs()
	for b.Loop() {
		if t.Allows(row, 0) {
			b.Fatal("allowed")
		}
	}
}

// TestReach: the hosts and upstreams of a token are effective while its grant and its granter's are. * includes no
// upstream.
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

package kernel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func fetching(pid int64, plain, open bool, hosts ...string) *schema.GrantInput {
	return &schema.GrantInput{PID: pid, HTTP: &schema.HTTPGrant{Hosts: hosts, Plain: plain, Open: open}}
}

// TestHTTPGrant: the canonical form, and invalid hosts.
func TestHTTPGrant(t *testing.T) {
	t.Parallel()
	got, err := kernel.NewGrant(fetching(7, true, false, "B.example.com", "*", "[2001:DB8::1]:443", "*", "a.example.com:*"), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &schema.HTTPGrant{Hosts: []string{"*", "[2001:db8::1]:443", "a.example.com:*", "b.example.com"}, Plain: true}
	if diff := cmp.Diff(want, got.HTTP); diff != "" {
		t.Errorf("grant (-want +got):\n%s", diff)
	}
	for _, host := range []string{"", "a b", "https://a.example.com", "a/b", "é.example.com", "a@b", "a\n"} {
		if _, err := kernel.NewGrant(fetching(7, false, false, "a.example.com", host), 0, nil); err == nil || err.Field != "http.hosts[1]" || err.Kind != fault.InvalidInput {
			t.Errorf("%q: %v", host, err)
		}
	}
}

// TestHTTPCovers: a process cannot grant more than it has.
func TestHTTPCovers(t *testing.T) {
	t.Parallel()
	own, err := kernel.NewGrant(fetching(7, false, true, "api.example.com", "*.example.org", "host.net:8443", "192.0.2.1"), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := kernel.NewGrant(fetching(7, true, true, "*"), 0, nil)
	ports, _ := kernel.NewGrant(fetching(7, false, false, "*:*"), 0, nil)
	none := &schema.TokenGrant{}
	for _, tt := range []struct {
		own  *schema.TokenGrant
		in   *schema.GrantInput
		want bool
	}{
		{own, &schema.GrantInput{PID: 8}, true},
		{none, &schema.GrantInput{PID: 8}, true},
		{none, fetching(8, false, false), true},
		{none, fetching(8, false, false, "a.example.com"), false},
		{none, fetching(8, true, false), false},
		{own, fetching(8, false, true, "api.example.com", "a.b.example.org", "*.b.example.org", "*.example.org", "host.net:8443", "192.0.2.1"), true},
		{own, fetching(8, false, false, "example.org"), false},
		{own, fetching(8, false, false, "badexample.org"), false},
		{own, fetching(8, false, false, "api.example.com:8443"), false},
		{own, fetching(8, false, false, "a.example.org:*"), false},
		{own, fetching(8, false, false, "*"), false},
		{own, fetching(8, false, false, "host.net"), false},
		{own, fetching(8, true, false, "api.example.com"), false},
		{all, fetching(8, true, true, "*", "*.com", "api.example.com"), true},
		{all, fetching(8, false, false, "192.0.2.1"), false},
		{all, fetching(8, false, false, "[::1]"), false},
		{all, fetching(8, false, false, "*:*"), false},
		{ports, fetching(8, false, false, "api.example.com:8443", "api.example.com", "*.example.org:*"), true},
		{ports, fetching(8, false, false, "192.0.2.1:8443"), false},
		{ports, fetching(8, false, false, "[::a]:8443"), false},
	} {
		other, err := kernel.NewGrant(tt.in, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&kernel.Token{Granted: schema.Token{PID: 7, TokenGrant: *tt.own}}).Covers(other, 0); (err == nil) != tt.want {
			t.Errorf("%+v of %+v: %v", tt.in.HTTP, tt.own.HTTP, err)
		}
	}
}

package fetch_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// inside returns names whose addresses are forbidden.
func inside() names {
	return names{
		"localhost":       {"127.0.0.1", "::1"},
		"loopback4.test":  {"127.0.0.1"},
		"loopback6.test":  {"::1"},
		"mapped.test":     {"::ffff:127.0.0.1"},
		"compatible.test": {"::127.0.0.1"},
		"nat64.test":      {"64:ff9b::7f00:1"},
		"sixtofour.test":  {"2002:7f00:1::"},
		"zoned.test":      {"fe80::1%lo"},
		"every.test":      {"0.0.0.0", "::"},
		"metadata.test":   {"169.254.169.254"},
	}
}

// grant returns a policy that allows the host in every form of a pattern, so that only the gate refuses it.
func grant(t testing.TB, host string) fetch.Policy {
	t.Helper()
	p := fetch.Policy{Hosts: hosts(t, "*:*"), PlainHTTP: true}
	if h, err := fetch.ParseHost(host + ":*"); err == nil {
		p.Hosts = append(p.Hosts, h)
	}
	return p
}

// TestForbidden checks that no form of a forbidden address is connected, with or without TLS: neither the trap nor the dialer gets a
// connection.
func TestForbidden(t *testing.T) {
	t.Parallel()
	tr := setTrap(t)
	if n := len(forbidden()); n < 60 {
		t.Fatalf("%d spellings", n)
	}
	nothing := fetch.WithDial(fetch.Options{Resolver: inside()}, func(_ context.Context, _, address string) (net.Conn, error) {
		t.Errorf("connects to %s", address)
		return nil, net.ErrClosed
	})
	for _, tc := range forbidden() {
		for _, scheme := range []string{"https", "http"} {
			for _, o := range []fetch.Options{nothing, {Resolver: inside()}} {
				_, err := do(t, o, fetch.Request{URL: scheme + "://" + tc.host + ":" + tr.port + "/", Policy: grant(t, tc.host)})
				shown, ok := errors.AsType[*fault.Fault](err)
				if !ok || shown.Kind != fault.Forbidden && shown.Kind != fault.InvalidInput || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%s://%q: %v, want %q", scheme, tc.host, err, tc.says)
				}
			}
		}
	}
	if n := tr.touched.Load(); n != 0 {
		t.Errorf("the trap got %d connections", n)
	}
}

// TestTrap checks that the trap of TestForbidden gets connections if the configuration opens the address.
func TestTrap(t *testing.T) {
	t.Parallel()
	tr := setTrap(t)
	for i, host := range []string{"127.0.0.1", "loopback4.test", "mapped.test"} {
		o := fetch.Options{Resolver: inside(), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		_, err := do(t, o, fetch.Request{URL: "http://" + host + ":" + tr.port, Policy: grant(t, host)})
		want(t, err, fault.Upstream)
		if n := tr.touched.Load(); n != int64(i+1) {
			t.Errorf("%s: the trap got %d connections, want %d", host, n, i+1)
		}
	}
}

// TestForbiddenByRedirect checks that each form is refused as a redirect target, also after several valid redirects.
func TestForbiddenByRedirect(t *testing.T) {
	t.Parallel()
	tr := setTrap(t)
	var to atomic.Pointer[string]
	s := serve(t, redirecting(&to))
	o := s.options(t)
	for name, addrs := range inside() {
		o.Resolver.(names)[name] = addrs
	}
	for _, tc := range forbidden() {
		if strings.ContainsAny(tc.host, "\t") {
			continue // not possible in a header
		}
		location := "https://" + tc.host + ":" + tr.port + "/"
		to.Store(&location)
		_, err := do(t, o, fetch.Request{URL: s.at("/3"), Policy: grant(t, tc.host)})
		shown, ok := errors.AsType[*fault.Fault](err)
		if !ok || shown.Kind != fault.Forbidden && shown.Kind != fault.Upstream || !strings.Contains(err.Error(), strings.TrimPrefix(tc.says, "url ")) {
			t.Errorf("%q: %v, want %q", tc.host, err, tc.says)
		}
	}
	if n := tr.touched.Load(); n != 0 {
		t.Errorf("the trap got %d connections", n)
	}
}

// TestRebinding checks that the checked address is the one that is dialled, even if the answers of the resolver change.
func TestRebinding(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][][]string{
		"second":  {{"93.184.215.14"}, {"127.0.0.1"}, {"169.254.169.254"}},
		"mixed":   {{"127.0.0.1", "93.184.215.14", "::1"}, {"10.0.0.1"}},
		"mapped":  {{"::ffff:93.184.215.14", "::ffff:127.0.0.1"}, {"::ffff:10.0.0.1"}},
		"flooded": {append(strings.Fields(strings.Repeat("127.0.0.1 ", 100)), "93.184.215.14"), {"::1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &rebinding{answers: answers}
			var dialled []string
			f := fetch.New(fetch.WithDial(fetch.Options{Resolver: r}, func(_ context.Context, _, address string) (net.Conn, error) {
				dialled = append(dialled, address)
				return nil, net.ErrClosed
			}))
			req := get(t, "https://rebinding.test/")
			_, err := f.Do(t.Context(), req)
			want(t, err, fault.Upstream)
			if len(dialled) != 1 || dialled[0] != "93.184.215.14:443" {
				t.Errorf("dialled %q", dialled)
			}
			for range answers[1:] {
				_, err = f.Do(t.Context(), req)
				want(t, err, fault.Forbidden)
			}
			if len(dialled) != 1 || r.asked != len(answers) {
				t.Errorf("dialled %q, asked %d times", dialled, r.asked)
			}
		})
	}
}

type rebinding struct {
	answers [][]string
	asked   int
}

func (r *rebinding) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	r.asked++
	return always(r.answers[r.asked-1]).LookupNetIP(ctx, network, host)
}

// TestRecheck checks that the address of the socket is checked when it connects.
func TestRecheck(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:443", "[::1]:443", "[::ffff:127.0.0.1]:443", "[fe80::1%1]:443", "@", ""} {
		want(t, fetch.Recheck(fetch.Options{}, address), fault.Forbidden)
	}
	testkit.Must(t, fetch.Recheck(fetch.Options{}, "93.184.215.14:443"))
}

// TestOpened checks that exactly the addresses that the configuration opens are allowed.
func TestOpened(t *testing.T) {
	t.Parallel()
	reached := errors.New("reached")
	for _, tc := range []struct {
		host, allow, hosts string
		ok                 bool
	}{
		{"93.184.215.14", "", "", true},
		{"1.1.1.1", "", "", true},
		{"192.0.1.1", "", "", true},
		{"172.32.0.1", "", "", true},
		{"100.128.0.1", "", "", true},
		{"198.20.0.1", "", "", true},
		{"[2606:4700::1111]", "", "", true},
		{"[2a00:1450::1]", "", "", true},
		{"[2001:4860:4860::8888]", "", "", true},
		{"10.1.2.3", "10.1.0.0/16", "", true},
		{"10.2.2.3", "10.1.0.0/16", "", false},
		{"[::ffff:10.1.2.3]", "10.1.0.0/16", "", false},
		{"[::ffff:10.1.2.3]", "::ffff:0:0/96", "", true},
		{"[fe80::1%25eth0]", "fe80::/10", "", false},
		{"loopback4.test", "", "loopback4.test:*", true},
		{"loopback6.test", "", "*.test:*", true},
		{"loopback6.test", "", "loopback4.test:*", false},
		{"loopback4.test", "", "loopback4.test", false},
		{"metadata.test", "", "metadata.test:*", false},
		{"zoned.test", "", "zoned.test:*", false},
		{"every.test", "", "every.test:*", false},
		{"10.1.2.3", "", "10.1.2.3:*", true},
		{"169.254.169.254", "", "169.254.169.254:*", false},
		{"169.254.169.254", "169.254.169.254/32", "", true},
	} {
		t.Run(tc.host+" "+tc.allow+" "+tc.hosts, func(t *testing.T) {
			t.Parallel()
			o := public(reached)
			o.Resolver = inside()
			for _, p := range strings.Fields(tc.allow) {
				o.Allow = append(o.Allow, netip.MustParsePrefix(p))
			}
			o.AllowHosts = hosts(t, strings.Fields(tc.hosts)...)
			_, err := do(t, o, fetch.Request{URL: "https://" + tc.host + ":8443/", Policy: grant(t, tc.host)})
			if shown, _ := errors.AsType[*fault.Fault](err); (shown.Kind == fault.Upstream) != tc.ok {
				t.Errorf("%v, want it reached: %t", err, tc.ok)
			}
		})
	}
}

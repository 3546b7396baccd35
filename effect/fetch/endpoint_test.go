package fetch_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// changing is a resolver whose answers change with each query.
type changing map[string][]string

func (n changing) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	list := n[host]
	if len(list) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	n[host] = append(list[1:], list[0])
	return []netip.Addr{netip.MustParseAddr(list[0])}, nil
}

// TestDial checks that Dial resolves a name once and checks the addresses that it dials, as a fetch does.
func TestDial(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, to, dialled string
		code              int
	}{
		{"public", "public.test:443", "203.0.112.7:443", 0},
		{"on its port", "public.test:7000", "203.0.112.7:7000", 0},
		{"rebound", "rebound.test:443", "203.0.112.8:443", 0},
		{"loopback", "inner.test:443", "", 403},
		{"loopback by number", "127.0.0.1:443", "", 403},
		{"loopback in IPv6", "[::ffff:127.0.0.1]:443", "", 403},
		{"metadata", "169.254.169.254:80", "", 403},
		{"allowed prefix", "10.1.2.3:443", "10.1.2.3:443", 0},
		{"beside it", "10.2.2.3:443", "", 403},
		{"allowed host", "git.lan:443", "192.168.1.1:443", 0},
		{"allowed host, other port", "git.lan:444", "", 403},
		{"nobody", "gone.test:443", "", 502},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lan, err := fetch.ParseHost("git.lan")
			testkit.Must(t, err)
			var dialled []string
			f := fetch.New(fetch.WithDial(fetch.Options{
				Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, AllowHosts: []fetch.Host{lan},
				Resolver: changing{
					"public.test": {"203.0.112.7"}, "inner.test": {"127.0.0.1"}, "git.lan": {"192.168.1.1"},
					"rebound.test": {"203.0.112.8", "127.0.0.1"},
				},
			}, func(_ context.Context, _, address string) (net.Conn, error) {
				dialled = append(dialled, address)
				ours, theirs := net.Pipe()
				_ = theirs.Close()
				return ours, nil
			}))
			to, err := fetch.ParseEndpoint(tt.to, 0)
			testkit.Must(t, err)
			conn, err := f.Dial(t.Context(), to)
			if conn != nil {
				_ = conn.Close()
			}
			shown, _ := errors.AsType[*fault.Fault](err)
			if tt.code == 0 && err != nil || tt.code != 0 && (shown == nil || shown.Code() != tt.code) {
				t.Errorf("error %v, want code %d", err, tt.code)
			}
			if got := strings.Join(dialled, " "); got != tt.dialled {
				t.Errorf("dialled %q, want %q", got, tt.dialled)
			}
		})
	}
}

// TestHostAdmits checks which endpoints a pattern allows: without a port it allows 80 and 443.
func TestHostAdmits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, to string
		admits      bool
	}{
		{"a.test", "a.test:443", true},
		{"a.test", "A.test:80", true},
		{"a.test", "a.test:8443", false},
		{"a.test:8443", "a.test:8443", true},
		{"a.test:8443", "a.test:443", false},
		{"*.a.test:*", "x.a.test:1", true},
		{"*", "x.test:443", true},
		{"*", "192.0.2.1:443", false},
		{"192.0.2.1", "192.0.2.1:443", true},
	} {
		h, err := fetch.ParseHost(tt.pattern)
		testkit.Must(t, err)
		to, err := fetch.ParseEndpoint(tt.to, 0)
		testkit.Must(t, err)
		if got := h.Admits(to); got != tt.admits {
			t.Errorf("%s admits %s: %v", tt.pattern, tt.to, got)
		}
	}
}

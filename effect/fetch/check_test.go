package fetch_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestCheck checks that Check refuses exactly the requests that Do refuses before it uses the network.
func TestCheck(t *testing.T) {
	t.Parallel()
	host, err := fetch.ParseHost("*.example.com")
	testkit.Must(t, err)
	address, err := fetch.ParseHost("10.0.0.1")
	testkit.Must(t, err)
	opened, err := fetch.ParseHost("10.1.0.1")
	testkit.Must(t, err)
	f := fetch.New(fetch.Options{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})
	granted := fetch.Policy{Hosts: []fetch.Host{host, address, opened}}
	never := func(context.Context, string) (string, error) {
		t.Error("a sealed value was opened")
		return "", nil
	}
	sealed := map[string]string{"authorization": "pwenc:v1:x"}
	for name, tt := range map[string]struct {
		req fetch.Request
		id  fault.ID // of the refusal; "": none
	}{
		"granted":         {fetch.Request{URL: "https://a.example.com/", Policy: granted}, ""},
		"opened address":  {fetch.Request{URL: "https://10.1.0.1/", Policy: granted}, ""},
		"sealed":          {fetch.Request{URL: "https://a.example.com/", Headers: sealed, Policy: fetch.Policy{AnyHost: true, Open: never}}, ""},
		"not granted":     {fetch.Request{URL: "https://example.org/", Policy: granted}, fault.HTTPForbidden},
		"plain":           {fetch.Request{URL: "http://a.example.com/", Policy: granted}, fault.HTTPForbidden},
		"closed address":  {fetch.Request{URL: "https://10.0.0.1/", Policy: granted}, fault.HTTPAddress},
		"closed to all":   {fetch.Request{URL: "https://[::1]/", Policy: fetch.Policy{AnyHost: true}}, fault.HTTPAddress},
		"sealed, not let": {fetch.Request{URL: "https://a.example.com/", Headers: sealed, Policy: granted}, fault.HTTPForbidden},
		"sealed, plain":   {fetch.Request{URL: "http://a.example.com/", Headers: sealed, Policy: fetch.Policy{AnyHost: true, PlainHTTP: true, Open: never}}, fault.HTTPForbidden},
		"no URL":          {fetch.Request{URL: "a", Policy: granted}, fault.HTTPInvalid},
		"no method":       {fetch.Request{URL: "https://a.example.com/", Method: "TRACE", Policy: granted}, fault.HTTPInvalid},
		"no body":         {fetch.Request{URL: "https://a.example.com/", Method: "PUT", Policy: granted}, fault.HTTPInvalid},
		"a bad header":    {fetch.Request{URL: "https://a.example.com/", Headers: map[string]string{"host": "x"}, Policy: granted}, fault.HTTPInvalid},
		"too late":        {fetch.Request{URL: "https://a.example.com/", Timeout: 1 << 50, Policy: granted}, fault.HTTPInvalid},
	} {
		refused := f.Check(tt.req)
		if tt.id == "" && refused != nil || tt.id != "" && (refused == nil || refused.ID != tt.id) {
			t.Errorf("%s: %v, want %q", name, refused, tt.id)
		}
	}
}

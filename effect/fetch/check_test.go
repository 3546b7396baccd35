package fetch_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/schema"
)

// TestCheck: what needs no network to be refused is refused without it, as Do would; all else passes.
func TestCheck(t *testing.T) {
	t.Parallel()
	host, err := fetch.ParseHost("*.example.com")
	if err != nil {
		t.Fatal(err)
	}
	address, err := fetch.ParseHost("10.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	opened, err := fetch.ParseHost("10.1.0.1")
	if err != nil {
		t.Fatal(err)
	}
	f := fetch.New(fetch.Options{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})
	granted := fetch.Policy{Hosts: []fetch.Host{host, address, opened}}
	never := func(context.Context, string) (string, error) {
		t.Error("a sealed value was opened")
		return "", nil
	}
	sealed := map[string]string{"authorization": "pwenc:v1:x"}
	for name, tt := range map[string]struct {
		req   fetch.Request
		class schema.Class // of the refusal; Internal: none
	}{
		"granted":         {fetch.Request{URL: "https://a.example.com/", Policy: granted}, schema.Internal},
		"opened address":  {fetch.Request{URL: "https://10.1.0.1/", Policy: granted}, schema.Internal},
		"sealed":          {fetch.Request{URL: "https://a.example.com/", Headers: sealed, Policy: fetch.Policy{AnyHost: true, Open: never}}, schema.Internal},
		"not granted":     {fetch.Request{URL: "https://example.org/", Policy: granted}, schema.Forbidden},
		"plain":           {fetch.Request{URL: "http://a.example.com/", Policy: granted}, schema.Forbidden},
		"closed address":  {fetch.Request{URL: "https://10.0.0.1/", Policy: granted}, schema.Forbidden},
		"closed to all":   {fetch.Request{URL: "https://[::1]/", Policy: fetch.Policy{AnyHost: true}}, schema.Forbidden},
		"sealed, not let": {fetch.Request{URL: "https://a.example.com/", Headers: sealed, Policy: granted}, schema.Forbidden},
		"sealed, plain":   {fetch.Request{URL: "http://a.example.com/", Headers: sealed, Policy: fetch.Policy{AnyHost: true, PlainHTTP: true, Open: never}}, schema.Forbidden},
		"no URL":          {fetch.Request{URL: "a", Policy: granted}, schema.InvalidInput},
		"no method":       {fetch.Request{URL: "https://a.example.com/", Method: "TRACE", Policy: granted}, schema.InvalidInput},
		"no body":         {fetch.Request{URL: "https://a.example.com/", Method: "PUT", Policy: granted}, schema.InvalidInput},
		"a bad header":    {fetch.Request{URL: "https://a.example.com/", Headers: map[string]string{"host": "x"}, Policy: granted}, schema.InvalidInput},
		"too late":        {fetch.Request{URL: "https://a.example.com/", Timeout: 1 << 50, Policy: granted}, schema.InvalidInput},
	} {
		fault := f.Check(tt.req)
		switch {
		case tt.class == schema.Internal && fault != nil:
			t.Errorf("%s: refused: %v", name, fault)
		case tt.class != schema.Internal && (fault == nil || fault.Kind != tt.class):
			t.Errorf("%s: %v, want class %d", name, fault, tt.class)
		}
	}
}

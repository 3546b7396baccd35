package fetch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestPolicyElse checks that a request is allowed if one of several policies allows all of it, and that otherwise the error has the
// advice.
func TestPolicyElse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ url, want string }{
		{"https://one.test/", ""},
		{"https://two.test/", ""},
		{"http://two.test/", ""},
		{"http://one.test/", "or add --http-plain --host one.test"},
		{"https://other.test/", "may not fetch from other.test: add --host other.test"},
	} {
		req := get(t, tc.url)
		req.Policy = fetch.Policy{
			Hosts: hosts(t, "one.test"), Else: &fetch.Policy{Hosts: hosts(t, "two.test"), PlainHTTP: true},
			Advise: func(flags []string, enough func(*fetch.Policy) bool) string {
				if enough(&fetch.Policy{}) || !enough(&fetch.Policy{AnyHost: true, PlainHTTP: true}) {
					t.Errorf("%s: enough does not report exactly the policies that allow the request", tc.url)
				}
				return "add " + strings.Join(flags, " ")
			},
		}
		o := untouched(t)
		if tc.want == "" {
			o = public(errors.New("reached"))
		}
		_, err := do(t, o, req)
		switch {
		case tc.want == "":
			want(t, err, fault.Upstream)
		case err == nil || !strings.Contains(err.Error(), tc.want):
			t.Errorf("%s: %v, want %s", tc.url, err, tc.want)
		}
	}
}

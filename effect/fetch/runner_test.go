package fetch_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestRunnerCheck checks that invalid requests, and those that the token does not allow, are refused without the network and with
// the fix.
func TestRunnerCheck(t *testing.T) {
	t.Parallel()
	token := &kernel.Token{Granted: schema.Token{PID: 7, TokenGrant: schema.TokenGrant{HTTP: &schema.HTTPGrant{Hosts: []string{"a.test"}}}}}
	r := &fetch.Runner{Fetcher: fetch.New(fetch.Options{}), Log: slog.New(slog.DiscardHandler), Open: func(context.Context, string) (string, error) {
		t.Error("a sealed value was opened")
		return "", nil
	}}
	put, body, ref := "PUT", "", &schema.BlobRef{Scheme: "data", Path: ",x"}
	sealed := map[string]string{"Authorization": "pwenc:v1:x"}
	for name, tt := range map[string]struct {
		pid   int64
		token *kernel.Token
		in    schema.HTTPFetchInput
		id    fault.ID // "": it may begin
		says  string
	}{
		"operator":             {in: schema.HTTPFetchInput{URL: "http://b.test/"}},
		"operator, sealed":     {in: schema.HTTPFetchInput{URL: "https://b.test/", Headers: sealed}},
		"granted":              {pid: 7, token: token, in: schema.HTTPFetchInput{URL: "https://a.test/"}},
		"an empty body":        {pid: 7, token: token, in: schema.HTTPFetchInput{URL: "https://a.test/", Method: &put, Body: &body}},
		"a body by reference":  {pid: 7, token: token, in: schema.HTTPFetchInput{URL: "https://a.test/", Method: &put, BodyRef: ref}},
		"no token":             {pid: 7, in: schema.HTTPFetchInput{URL: "https://a.test/"}, id: fault.HTTPForbidden, says: `pwos cap grant 7 --add Http.Fetch --host HOST`},
		"no hosts":             {pid: 7, token: &kernel.Token{}, in: schema.HTTPFetchInput{URL: "https://a.test/"}, id: fault.HTTPForbidden, says: "may fetch from no host"},
		"another host":         {pid: 7, token: token, in: schema.HTTPFetchInput{URL: "https://b.test/"}, id: fault.HTTPForbidden, says: `pwos cap grant 7 --add Http.Fetch --host b.test"`},
		"sealed, not granted":  {pid: 7, token: token, in: schema.HTTPFetchInput{URL: "https://a.test/", Headers: sealed}, id: fault.HTTPForbidden, says: "--http-open --host a.test"},
		"a closed address":     {in: schema.HTTPFetchInput{URL: "https://10.0.0.1/"}, id: fault.HTTPAddress, says: "private"},
		"no body where needed": {in: schema.HTTPFetchInput{URL: "https://a.test/", Method: &put}, id: fault.HTTPInvalid, says: "body is required for PUT"},
		"no URL":               {in: schema.HTTPFetchInput{URL: "a"}, id: fault.HTTPInvalid, says: "url"},
	} {
		refused := r.Check(&kernel.Call{Decision: kernel.Decision{PID: tt.pid, Token: tt.token}}, &tt.in)
		switch {
		case tt.id == "" && refused != nil:
			t.Errorf("%s: %v", name, refused)
		case tt.id != "" && (refused == nil || !errors.Is(refused, tt.id) || !strings.Contains(refused.Text(), tt.says)):
			t.Errorf("%s: %v, want %s that says %q", name, refused, tt.id, tt.says)
		}
	}
}

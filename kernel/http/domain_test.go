package http_test

import (
	"errors"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/http"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestDecide: the check's refusals, two bodies and a bad reference are refused at once; a runner gets all other
// requests unchanged.
func TestDecide(t *testing.T) {
	t.Parallel()
	token := &kernel.Token{Granted: schema.Token{PID: 7, TokenGrant: schema.TokenGrant{HTTP: &schema.HTTPGrant{Hosts: []string{"*"}}}}}
	body, put := "x", "PUT"
	ref := &schema.BlobRef{Scheme: "data", Path: ",x"}
	check := func(call *kernel.Call, in *schema.HTTPFetchInput) *fault.Fault {
		if in.URL == "closed" {
			return fault.HTTPForbidden.New("pid %d may not", call.PID)
		}
		return nil
	}
	for name, tt := range map[string]struct {
		pid   int64
		token *kernel.Token
		in    schema.HTTPFetchInput
		id    fault.ID
		begun bool
	}{
		"operator":       {in: schema.HTTPFetchInput{URL: "u"}, begun: true},
		"granted":        {pid: 7, token: token, in: schema.HTTPFetchInput{URL: "u"}, begun: true},
		"body":           {in: schema.HTTPFetchInput{URL: "u", Method: &put, Body: &body}, begun: true},
		"body elsewhere": {in: schema.HTTPFetchInput{URL: "u", Method: &put, BodyRef: ref}, begun: true},
		"not let":        {pid: 7, token: token, in: schema.HTTPFetchInput{URL: "closed"}, id: fault.HTTPForbidden},
		"two bodies":     {in: schema.HTTPFetchInput{URL: "u", Body: &body, BodyRef: ref}, id: fault.WireInvalidInput},
		"no reference":   {in: schema.HTTPFetchInput{URL: "u", BodyRef: &schema.BlobRef{Scheme: "file", Path: "x"}}, id: fault.WireInvalidInput},
	} {
		result, err := http.New(check).Decide(&kernel.Call{Request: kernel.Request{Syscall: schema.HTTPFetch.Syscall, Input: &tt.in}, Decision: kernel.Decision{PID: tt.pid, Token: tt.token}})
		switch {
		case tt.begun && (err != nil || result.Effect == nil || result.Effect.Run != &tt.in):
			t.Errorf("%s: %+v, %v", name, result, err)
		case !tt.begun && !errors.Is(err, tt.id):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEnd: the answer is the runner's.
func TestEnd(t *testing.T) {
	t.Parallel()
	for _, want := range []schema.Outcome{{Data: []byte(`{"status":200}`)}, {Err: fault.HTTPTimeout.New("late")}} {
		in := &schema.EffectEnd{Outcome: schema.AppendOutcome(nil, schema.KindCommand, &want)}
		result, err := http.New(nil).Decide(&kernel.Call{Request: kernel.Request{Syscall: schema.HTTPFetch.End.Syscall, Input: in}})
		if string(result.Data) != string(want.Data) || (err == nil) != (want.Err == nil) || err != nil && err.Error() != want.Err.Error() {
			t.Errorf("%s, %v, want %+v", result.Data, err, want)
		}
	}
}

package network_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/network"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// id is the id of a refusal.
func id(in any) fault.ID {
	if _, ok := in.(*schema.NetRequestInput); ok {
		return fault.UpstreamForbidden
	}
	return fault.NetForbidden
}

// TestDecide: the present token decides, and a refusal says what to add.
func TestDecide(t *testing.T) {
	t.Parallel()
	d := network.New(func(hosts []string, host string, port int64) bool {
		return slices.Contains(hosts, host) || slices.Contains(hosts, fmt.Sprintf("%s:%d", host, port))
	})
	token := func(until *int64) *kernel.Token {
		return &kernel.Token{Granted: schema.Token{PID: 7, TokenGrant: schema.TokenGrant{
			AllowedSyscalls: []string{"Upstream:a"}, ExpiresAtTick: until, HTTP: &schema.HTTPGrant{Hosts: []string{"a.test", "b.test:7000"}},
		}}}
	}
	tests := []struct {
		name  string
		token *kernel.Token
		in    any
		want  string // the refusal; "": it is begun
	}{
		{"host", token(nil), &schema.NetConnectInput{Host: "a.test", Port: 443}, ""},
		{"host and port", token(nil), &schema.NetConnectInput{Host: "b.test", Port: 7000}, ""},
		{"last tick", token(new(int64(5))), &schema.NetConnectInput{Host: "a.test", Port: 443}, ""},
		{"no token", nil, &schema.NetConnectInput{Host: "a.test", Port: 443}, `pid 7 may not connect to a.test:443: allow it too with "pwos cap grant 7 --add Http.Fetch --host a.test"`},
		{"expired", token(new(int64(4))), &schema.NetConnectInput{Host: "a.test", Port: 80}, `pid 7 may not connect to a.test:80: allow it too with "pwos cap grant 7 --add Http.Fetch --host a.test --ttl 1h"`},
		{"other port", token(nil), &schema.NetConnectInput{Host: "b.test", Port: 7001}, `pid 7 may not connect to b.test:7001: allow it too with "pwos cap grant 7 --add Http.Fetch --host b.test:7001"`},
		{"an address", token(nil), &schema.NetConnectInput{Host: "::1", Port: 443}, `pid 7 may not connect to [::1]:443: allow it too with "pwos cap grant 7 --add Http.Fetch --host '[::1]'"`},
		{"a name", token(nil), &schema.NetConnectInput{Host: "c.test"}, `pid 7 may not connect to c.test: allow it too with "pwos cap grant 7 --add Http.Fetch --host c.test"`},
		{"refused all the same", token(nil), &schema.NetConnectInput{Host: "a.test", Port: 443, Refused: "it asked for b.test"}, "pid 7 may not connect to a.test:443: it asked for b.test"},
		{"upstream", token(nil), &schema.NetRequestInput{Upstream: "a", Method: "GET", Path: "/"}, ""},
		{"other upstream", token(nil), &schema.NetRequestInput{Upstream: "b", Method: "GET", Path: "/"}, `pid 7 may not use the upstream b: allow it too with "pwos cap grant 7 --add Upstream:b"`},
		{"expired upstream", token(new(int64(4))), &schema.NetRequestInput{Upstream: "a", Method: "GET", Path: "/"}, `pid 7 may not use the upstream a: allow it too with "pwos cap grant 7 --add Upstream:a --ttl 1h"`},
		{"other request", token(nil), &schema.NetRequestInput{Upstream: "a", Method: "PUT", Path: "/x", Refused: "it is not listed"}, "pid 7 may not send PUT /x to the upstream a: it is not listed"},
	}
	for _, tt := range tests {
		result, err := d.Decide(&kernel.Call{Request: kernel.Request{Syscall: rowOf(tt.in), Input: tt.in}, Decision: kernel.Decision{PID: 7, Token: tt.token, Moment: kernel.Moment{Tick: 5}}})
		switch {
		case tt.want == "" && (err != nil || result.Effect == nil || result.Effect.Run != tt.in):
			t.Errorf("%s: %+v, %v", tt.name, result, err)
		case tt.want != "" && (!errors.Is(err, id(tt.in)) || fault.Of(err).Text() != tt.want):
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	end, err := d.Decide(&kernel.Call{Request: kernel.Request{Syscall: schema.NetConnect.End.Syscall, Input: &schema.EffectEnd{Type: "Net.Connect", Outcome: schema.AppendOutcome(nil, schema.KindCommand, &schema.Outcome{Data: []byte(`{"sent":1}`)})}}})
	if err != nil || string(end.Data) != `{"sent":1}` {
		t.Errorf("end %s, %v", end.Data, err)
	}
}

// rowOf is the row of an input.
func rowOf(in any) *schema.Syscall {
	if _, ok := in.(*schema.NetRequestInput); ok {
		return schema.NetRequest.Syscall
	}
	return schema.NetConnect.Syscall
}

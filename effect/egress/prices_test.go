package egress_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/effect/price"
	"github.com/promptware-os/pwos/schema"
)

// TestMetered checks that requests of an agent with a budget are journaled with their token limit, and answers with their cost, that the
// upstream gets the request unchanged, and that a model without a price counts at the dearest that is known.
func TestMetered(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5<<20)
	for _, test := range []struct {
		name, kind, body string
		tokens, micros   int64
	}{
		{"Anthropic", "application/json", `{"model":"m-1","messages":[{"max_tokens":9}],"max_tokens":100}`, 100, 1500},
		{"OpenAI", "application/json; charset=utf-8", `{"max_completion_tokens":7,"model":"m-1"}`, 7, 105},
		{"Responses", "application/json", `{"model":"m-1","max_output_tokens":1}`, 1, 15},
		{"Gemini", "application/json", `{"contents":[],"generationConfig":{"maxOutputTokens":50,"candidateCount":2}}`, 100, 1500},
		{"no maximum", "application/json", `{"model":"m-1"}`, 0, 0},
		{"no price", "application/json", `{"model":"x-1","max_tokens":100}`, 100, 2000},
		{"a maximum that is none", "application/json", `{"model":"m-1","max_tokens":-1}`, 0, 0},
		{"too large a maximum", "application/json", `{"model":"m-1","max_tokens":1e300}`, 1<<53 - 1, 1<<53 - 1},
		{"a maximum that is no integer of 64 bits", "application/json", `{"model":"m-1","max_tokens":9223372036854775808}`, 1<<53 - 1, 1<<53 - 1},
		{"several answers", "application/json", `{"model":"m-1","n":3,"max_tokens":100}`, 300, 4500},
		{"of the best of several", "application/json", `{"best_of":20,"n":3,"model":"m-1","max_tokens":100}`, 2000, 30000},
		{"a text for a number", "application/json", `{"model":"m-1","max_tokens":"100"}`, 100, 1500},
		{"too many answers", "application/json", `{"model":"m-1","n":1e300,"max_tokens":1e300}`, 1<<53 - 1, 1<<53 - 1},
		{"too many of nothing", "application/json", `{"model":"m-1","n":1e400}`, 0, 0},
		{"no answers", "application/json", `{"model":"m-1","n":-1,"max_tokens":100}`, 100, 1500},
		{"escaped names", "application/json", `{"mod\u0065l":"m\u002d1","m\u0061x_tokens":100}`, 100, 1500},
		{"a fraction", "application/json", `{"model":"m-1","max_tokens":1.5}`, 2, 30},
		{"said to be no JSON", "text/plain", `{"max_tokens":100}`, 100, 2000},
		{"no JSON", "text/plain", `max_tokens=100`, 0, 0},
		{"broken", "application/json", `{"max_tokens":`, 0, 0},
		{"too long", "application/json", `{"model":"m-1","messages":["` + long + `"],"max_tokens":100}`, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server, saw := model(t)
			h := open(t, withUpstream(upstream(t, server.URL)), func(c *egress.Config) {
				c.Metered = func(int64) bool { return true }
				c.Prices = price.Table{"m-*": {Input: 3, Output: 15}, "m-2*": {Input: 1}}
			})
			h.grant(nil, "Upstream:model")
			path := "/v1/chat"
			if test.name == "Gemini" { // which names the model there
				path = "/v1/models/m-1:generateContent"
			}
			raw(t, h.upstreams["model"], fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
				path, test.kind, len(test.body), test.body))
			e := h.await(1)[0]
			in := e.in.(*schema.NetRequestInput)
			if in.MaxTokens != test.tokens || in.MaxMicroUSD != test.micros {
				t.Errorf("asks for %d tokens, of %d millionths of a dollar; want %d, %d", in.MaxTokens, in.MaxMicroUSD, test.tokens, test.micros)
			}
			if in.Refused != "" || len(saw.all()) != 1 {
				t.Fatalf("refused: %q, the upstream saw %d requests", in.Refused, len(saw.all()))
			}
			if got := saw.all()[0]; !strings.HasSuffix(got, " body="+test.body) {
				t.Errorf("the upstream saw %d bytes", len(got))
			}
			if want := `"usage":{"model":"m-1","input_tokens":12,"output_tokens":3,"micro_usd":81}`; !strings.Contains(e.data, want) {
				t.Errorf("entry %s", e.data)
			}
		})
	}
}

// TestUnmetered: a request whose use of a model would not be known is refused to an agent with a budget, and says why.
func TestUnmetered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ path, body, why string }{
		"a later answer":   {"/v1/chat", `{"model":"m-1","background":true}`, "leave out background"},
		"a batch":          {"/v1/models/m-1:batchGenerateContent", `{}`, "generateContent and streamGenerateContent alone"},
		"a long operation": {"/v1/models/m-1:predictLongRunning", `{}`, "generateContent and streamGenerateContent alone"},
		"no later answer":  {"/v1/chat", `{"model":"m-1","background":false}`, ""},
		"a stream":         {"/v1/models/m-1:streamGenerateContent", `{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, saw := model(t)
			h := open(t, withUpstream(upstream(t, server.URL)), func(c *egress.Config) { c.Metered = func(int64) bool { return true } })
			h.grant(nil, "Upstream:model")
			raw(t, h.upstreams["model"], fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", tt.path, len(tt.body), tt.body))
			in := h.await(1)[0].in.(*schema.NetRequestInput)
			if !strings.Contains(in.Refused, tt.why) || (tt.why == "") != (in.Refused == "") {
				t.Errorf("refused: %q, want %q (%d requests came)", in.Refused, tt.why, len(saw.all()))
			}
		})
	}
}

package schema_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// TestNetRule checks which requests a rule allows.
func TestNetRule(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule, method, path string
		want               bool
	}{
		{"POST /v1/chat", "POST", "/v1/chat", true},
		{"POST /v1/chat", "GET", "/v1/chat", false},
		{"POST /v1/chat", "post", "/v1/chat", false},
		{"POST /v1/chat", "POST", "/v1/chat/x", false},
		{"POST /v1/…", "POST", "/v1/chat/x", true},
		{"POST /v1/...", "POST", "/v1/chat/x", true},
		{"POST /v1/*", "POST", "/v1/", true},
		{"POST /v1/…", "POST", "/v2/", false},
		{"POST /v1…", "POST", "/v10", true},
		{"* /…", "DELETE", "/x", true},
		{"* /…", "TRACE", "/x", false},
		{"* /…", "CONNECT", "/x", false},
	}
	for _, tt := range tests {
		rule, err := schema.ParseNetRule(tt.rule)
		if err != nil {
			t.Errorf("%s: %v", tt.rule, err)
			continue
		}
		if got := rule.Allows(tt.method, tt.path); got != tt.want {
			t.Errorf("%s allows %s %s: %v", tt.rule, tt.method, tt.path, got)
		}
	}
	for _, bad := range []string{
		"", "POST", "/v1", "post /v1", "POST v1", "POST  /v1", "POST /v1?x", "POST /v1/*/x", "POST /a//b", "POST /a/../b", "POST /%2e", "TRACE /", "CONNECT /", "GET /é",
	} {
		if rule, err := schema.ParseNetRule(bad); err == nil {
			t.Errorf("%q is %+v", bad, rule)
		}
	}
}

// TestPathFault checks that a path that two servers may interpret differently has a fault.
func TestPathFault(t *testing.T) {
	t.Parallel()
	for path, good := range map[string]bool{
		"/": true, "/v1/models": true, "/v1/a.b/..c": true, "/a%20b": true, "/v1/": true,
		"": false, "*": false, "v1": false, "/v1//x": false, "/v1/./x": false, "/v1/../x": false, "/v1/..": false, "/v1/%2E%2e/x": false,
		"/v1/%2fx": false, "/v1/%5Cx": false, `/v1/\x`: false, "/v1/%252e": false, "/v1;x": false, "/v1/%00": false, "/é": false, "/a b": false,
		"/v1/%C3%A9": true, "/v1/%E2%82%AC": true, "/v1/%c0%ae%c0%ae/x": false, "/v1/%c0%af": false, "/v1/%e0%80%ae": false, "/v1/%f0%80%80%af": false, "/v1/%ff": false,
		"/v1/%ed%a0%80": false, "/v1/%0d%0ax": false, "/v1/%7f": false, "/v1/%09": false, "/v1/%c2%85": false, "/v1/x%3fy": false, "/v1/x%23y": false, "/v1/x%3By": false,
		"/v1/%ef%bc%8f": false, "/v1/%ef%bc%8e": false, "/v1/%e2%88%95x": false, "/v1/%u002e": false, "/v1/%": false, "/v1/%4": false,
	} {
		if fault := schema.PathFault(path); (fault == "") != good {
			t.Errorf("%q: %q", path, fault)
		}
	}
}

// TestNetHeaders checks which headers a list allows. No list allows one from which a server may take another method, path or host, or
// one that concerns the connection.
func TestNetHeaders(t *testing.T) {
	t.Parallel()
	never := []string{
		"X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method", "X-Original-URL", "X-Rewrite-URL", "X_HTTP_Method_Override", "x-http-method_override", "x.original.url",
		"X-Forwarded-Host", "X-Forwarded-Prefix", "X-Original-URI", "X-Envoy-Original-Path", "X-Accel-Redirect", "X-Middleware-Rewrite", "X-Host", "Host", "Destination", "Forwarded",
		"X-HTTP-Host-Override", "Method-Override", "_method", "Connection", "Te", "Trailer", "Transfer-Encoding", "Transfer_Encoding", "Content-Length", "Content_Length", "Upgrade",
		"Expect", "Keep-Alive", "Proxy-Authorization", "Http2-Settings", "Accept-Encoding",
	}
	known := schema.KnownHeaders()
	for _, name := range never {
		if _, err := schema.ParseNetHeaders([]string{name}); err == nil {
			t.Errorf("%s can be listed", name)
		}
		if append(known, "x-*", strings.ToLower(name)).Allows(name) {
			t.Errorf("%s is allowed", name)
		}
	}
	for name, want := range map[string]bool{
		"Anthropic-Version": true, "anthropic-beta": true, "Anthropic-Dangerous-Direct-Browser-Access": true, "X-Stainless-Retry-Count": true, "X-Stainless-Helper-Method": true,
		"OpenAI-Organization": true, "OpenAI-Beta": true, "session_id": true, "Session_id": true, "chatgpt-account-id": true, "originator": true, "X-Codex-Turn-State": true,
		"X-Goog-Api-Client": true, "X-Goog-Upload-Command": true, "Mcp-Session-Id": true, "Mcp-Protocol-Version": true, "Mcp-Method": true, "Last-Event-ID": true,
		"Traceparent": true, "Idempotency-Key": true, "Accept": true, "Content-Type": true, "User-Agent": true, "Sec-Websocket-Key": true,
		"X-Team": false, "Authorization": false, "Cookie": false, "X-Goog-Api-Key": false, "X-Goog-Iam-Authorization-Token": false, "Anthropic-Api-Key": false,
		"Anthropic_Version": false, "Openai-Rewrite-Url": false, "X-Goog-Api.Client": false, "Content_Type": false, "X-Api-Key": false, "X_Api_Key": false, "": false,
	} {
		if known.Allows(name) != want {
			t.Errorf("the default allows %q: %v", name, !want)
		}
	}
	own, err := schema.ParseNetHeaders([]string{"X-Team", "x-ms-*", "X-Ms-Token"})
	testkit.Must(t, err)
	for name, want := range map[string]bool{"x-team": true, "X-Team-2": false, "X-Ms-Date": true, "X-Ms-Token": true, "X-Ms-Secret": false, "Accept": false} {
		if own.Allows(name) != want {
			t.Errorf("the list allows %q: %v", name, !want)
		}
	}
	both, err := schema.ParseNetHeaders([]string{"default", "X-Team"})
	testkit.Must(t, err)
	none, err := schema.ParseNetHeaders([]string{})
	testkit.Must(t, err)
	if !both.Allows("Accept") || !both.Allows("X-Team") || none.Allows("Accept") {
		t.Errorf("%v, %v", both, none)
	}
	for _, bad := range []string{"", "*", "x*", "X Team", "x:y", "x-*-y", "x-original-*", "x-forwarded-*", "proxy-*", "é"} {
		if list, err := schema.ParseNetHeaders([]string{bad}); err == nil {
			t.Errorf("%q is %v", bad, list)
		}
	}
}

// TestQueryFault checks that a query from which a server may take another method has a fault.
func TestQueryFault(t *testing.T) {
	t.Parallel()
	for query, good := range map[string]bool{
		"": true, "a=b&key=mine": true, "method=x&path=/y&url=z": true, "alt=sse": true, "pageToken=%5F": true, "a=%zz": true, "a=_method": true,
		"_method=DELETE": false, "a=b&_method=PUT": false, "a=b;_method=PUT": false, "%5Fmethod=PUT": false, "_method%5B%5D=PUT": false, "_method[]=PUT": false,
		"X-HTTP-Method-Override=PUT": false, "x_http_method_override": false, "$httpMethod=DELETE": false, "%24httpHeaders=x": false, "methodOverride=PUT": false, "+_method=PUT": false,
	} {
		if fault := schema.QueryFault(query); (fault == "") != good {
			t.Errorf("%q: %q", query, fault)
		}
	}
}

package schema_test

import (
	"testing"

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
	} {
		if fault := schema.PathFault(path); (fault == "") != good {
			t.Errorf("%q: %q", path, fault)
		}
	}
}

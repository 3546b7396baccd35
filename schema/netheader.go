package schema

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// NetHeaders are the names of the request headers that an upstream accepts, in lower case. A name that ends with * is a prefix.
type NetHeaders []string

// DefaultHeaders in a list of headers stands for all names of KnownHeaders.
const DefaultHeaders = "default"

// KnownHeaders returns the headers that clients of model APIs and of MCP servers send, without credentials.
func KnownHeaders() NetHeaders {
	return NetHeaders{
		"accept", "accept-language", "content-type", "content-encoding", "content-language", "user-agent", "range", "if-match", "if-none-match", "if-modified-since",
		"cache-control", "pragma", "idempotency-key", "prefer", "traceparent", "tracestate", "baggage", "x-request-id", "x-client-request-id",
		"sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions",
		"anthropic-*", "x-anthropic-*", "x-claude-*", "x-app", "x-stainless-*", "x-stainless-helper-method",
		"openai-*", "x-openai-*", "x-codex-*", "chatgpt-account-id", "originator", "version",
		"session_id", "session-id", "conversation_id", "conversation-id", "thread_id", "thread-id", "x-session-id", "x-session-affinity",
		"x-goog-*", "x-gemini-*", "x-server-timeout", "x-dashscope-*", "http-referer", "x-title", "x-opencode-*",
		"mcp-*", "mcp-method", "last-event-id",
	}
}

// ParseNetHeaders parses the names of headers, or prefixes of names followed by *. nil stands for KnownHeaders.
func ParseNetHeaders(names []string) (NetHeaders, error) {
	if names == nil {
		return KnownHeaders(), nil
	}
	list := make(NetHeaders, 0, len(names))
	for _, name := range names {
		lower := strings.ToLower(name)
		if lower == DefaultHeaders {
			list = append(list, KnownHeaders()...)
			continue
		}
		rest, prefix := strings.CutSuffix(lower, "*")
		switch {
		case strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || !prefix && rest == "" || prefix && !strings.HasSuffix(rest, "-"):
			return nil, fmt.Errorf("%q must be the name of a header, such as x-team, or a prefix such as x-team-*, or %q", name, DefaultHeaders)
		case OverridesRequest(rest) || prefix && OverridesRequest(rest+"-"):
			return nil, fmt.Errorf("%q cannot be allowed, since a server may take another method, path or host from it", name)
		case FramesRequest(rest):
			return nil, fmt.Errorf("%q cannot be allowed, since it concerns the kernel's connection to the server", name)
		}
		list = append(list, lower)
	}
	return list, nil
}

// Allows reports whether a header is forwarded. A prefix allows no name that looks like that of a credential or of a part of the
// request line, and none that some servers cannot tell from another name.
func (h NetHeaders) Allows(name string) bool {
	lower := strings.ToLower(name)
	if OverridesRequest(lower) || FramesRequest(lower) {
		return false
	}
	return slices.ContainsFunc(h, func(allowed string) bool {
		prefix, many := strings.CutSuffix(allowed, "*")
		return lower == allowed || many && strings.HasPrefix(lower, prefix) && lower == HeaderKey(lower) && !suspect(lower)
	})
}

// HeaderKey returns a key that is the same for the names of headers that some servers cannot tell from each other: CGI and what
// follows it convert a name to upper case, and each character that is no letter or digit to an underscore.
func HeaderKey(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, name)
}

// OverridesRequest reports whether a server may take another method, path or host from a header. The names are those of
// frameworks, proxies and gateways.
func OverridesRequest(name string) bool {
	key := strings.Trim(HeaderKey(name), "-")
	if slices.Contains([]string{
		"method", "x-method", "x-http-method", "http-method", "path", "x-path", "url", "x-url", "uri", "x-uri", "request-uri", "x-request-uri", "host", "x-host",
		"destination", "overwrite", "forwarded", "x-rewrite", "x-matched-path", "x-invoke-path", "x-waws-unencoded-url", "script-name", "path-info", "x-script-name", "x-proxy-url",
	}, key) {
		return true
	}
	return strings.Contains(key, "override") || slices.ContainsFunc([]string{
		"x-forwarded", "x-original", "x-rewrite-", "x-envoy-original", "x-envoy-decorator", "x-accel-", "x-middleware-", "x-sendfile", "x-arr-",
	}, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// FramesRequest reports whether a header concerns the connection or the framing of a request, which the kernel sets.
func FramesRequest(name string) bool {
	key := HeaderKey(name)
	return slices.Contains([]string{
		"connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive", "expect", "http2-settings", "accept-encoding",
	}, key) || strings.HasPrefix(key, "proxy-")
}

// suspect reports whether a name looks like that of a credential or of a part of the request line.
func suspect(lower string) bool {
	return slices.ContainsFunc([]string{"auth", "cookie", "token", "secret", "credential", "password"}, func(part string) bool { return strings.Contains(lower, part) }) ||
		slices.ContainsFunc(strings.Split(lower, "-"), func(word string) bool {
			return slices.Contains([]string{"key", "apikey", "method", "path", "url", "uri", "host", "rewrite", "forward", "redirect"}, word)
		})
}

// QueryFault returns why a server may take another method from a query than that of the request; "" if it does not.
func QueryFault(query string) string {
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		name, _, _ = strings.Cut(strings.TrimSpace(name), "[") // _method[] is _method for some
		key := strings.Trim(HeaderKey(name), "-")
		if strings.Contains(key, "override") || slices.Contains([]string{"x-http-method", "x-method", "httpmethod", "http-method", "httpheaders"}, key) || name == "_method" {
			return fmt.Sprintf("has the parameter %q", name)
		}
	}
	return ""
}

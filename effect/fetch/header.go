package fetch

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// sealedPrefix is the prefix of a sealed value (PROTOCOL 5).
const sealedPrefix = "pwenc:v1:"

// headers has the validated headers of a request. Sealed values are not opened yet.
type headers struct {
	plain  http.Header
	sealed map[string]string // by canonical name
	limit  int64
}

// parseHeaders validates the headers of a request. Its errors have no values of headers.
func parseHeaders(fields map[string]string, limit int64) (*headers, *fault.Fault) {
	h := &headers{plain: http.Header{}, sealed: map[string]string{}, limit: limit}
	var size int64
	for name, value := range fields {
		canonical := http.CanonicalHeaderKey(name)
		size += int64(len(name) + len(value) + len(": \r\n"))
		switch {
		case name == "" || len(name) > 256 || strings.ContainsFunc(name, noToken):
			return nil, invalid("headers", "has an invalid name: use letters, digits and hyphens only")
		case ours(canonical):
			return nil, invalid("headers", "must not have %s: the kernel sets it", canonical)
		case schema.OverridesRequest(canonical):
			return nil, invalid("headers", "must not have %s, from which a server may take another method, path or host: name them in method and url", canonical)
		case h.plain[canonical] != nil || h.sealed[canonical] != "":
			return nil, invalid("headers", "has %s twice", canonical)
		case strings.HasPrefix(value, sealedPrefix):
			h.sealed[canonical] = value
			continue
		case strings.Contains(value, sealedPrefix):
			return nil, invalid("headers", "has a sealed part in %s: seal the whole value", canonical)
		case strings.ContainsFunc(value, noValue):
			return nil, invalid("headers", "has a control character in %s", canonical)
		}
		h.plain[canonical] = []string{value}
	}
	if size > limit {
		return nil, invalid("headers", "must not be longer than %d bytes together", limit)
	}
	return h, nil
}

// ours reports whether a header concerns the connection, the framing or the destination of a request, so that only the kernel sets it.
func ours(canonical string) bool { return canonical == "Host" || schema.FramesRequest(canonical) }

func noToken(c rune) bool {
	return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
}

func noValue(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// permit returns a fault if a sealed value may not be opened for t.
func (h *headers) permit(t *target, p *Policy) *fault.Fault {
	for name := range h.sealed {
		switch {
		case p.opener(t) == nil:
			return denied("the caller may not send a sealed value in %s: %s", name,
				p.advice([]string{"--http-open", "--host", t.url.Host}, func(one *Policy) bool { return one.Open != nil && one.allows(t) }))
		case t.url.Scheme != "https":
			return denied("the sealed value in %s is sent over https only", name)
		}
	}
	return nil
}

// open returns the headers of a request to t, with sealed values opened.
func (h *headers) open(ctx context.Context, t *target, p *Policy) (http.Header, error) {
	if denied := h.permit(t, p); denied != nil {
		return nil, denied
	}
	out := h.plain.Clone()
	for name, sealed := range h.sealed {
		value, err := p.opener(t)(ctx, sealed)
		if err != nil {
			return nil, fmt.Errorf("open the sealed value in %s: %w", name, err)
		}
		if int64(len(value)) > h.limit || strings.ContainsFunc(value, noValue) {
			return nil, invalid("headers", "has a sealed value in %s that is not valid: a control character, or too long", name)
		}
		out[name] = []string{value}
	}
	return out, nil
}

// leave removes all headers that may not be sent to another origin after a redirect. It keeps a fixed list, because any other header
// could be a credential.
func (h *headers) leave() {
	for name := range h.plain {
		if !slices.Contains([]string{"Accept", "Accept-Language", "Content-Language", "Content-Type", "User-Agent", "Range"}, name) {
			delete(h.plain, name)
		}
	}
	clear(h.sealed)
}

// leaveBody removes the headers that describe the body.
func (h *headers) leaveBody() {
	for _, headers := range []string{"Content-Type", "Content-Language", "Content-Location", "Content-Encoding"} {
		delete(h.plain, headers)
		delete(h.sealed, headers)
	}
}

// flatten returns the headers of an answer by lower-case name, without those of the connection and of the compression of an unpacked
// body.
func flatten(in http.Header, unpacked bool) map[string]string {
	out := make(map[string]string, len(in))
	for name, values := range in {
		switch {
		case name == "Content-Length" && !unpacked:
			out["content-length"] = strings.Join(values, ", ")
		case ours(name), unpacked && name == "Content-Encoding":
			continue
		case name == "Set-Cookie":
			out["set-cookie"] = strings.Join(values, "\n")
		default:
			out[strings.ToLower(name)] = strings.Join(values, ", ")
		}
	}
	return out
}

package fetch

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// Request is the request of an Http.Fetch (MESSAGE appendix D).
type Request struct {
	Method  string // GET, POST, PUT, DELETE or PATCH; empty: GET
	URL     string
	Headers map[string]string // Policy.Open opens a value that begins with pwenc:v1: just before it is sent
	Body    *Body             // required for POST and PUT, ignored for GET
	Timeout time.Duration     // in total; 0 is Limits.Timeout
	Policy  Policy

	// Spill returns the writer for a body that does not fit Response.Body; it is called at most once. If Do returns an error, the
	// written data may be incomplete. If Spill is nil, such a body is an error. Do wraps an error of Spill or of the writer.
	Spill func() (io.Writer, error)
}

// Policy has the permissions of the caller. The zero value allows nothing.
type Policy struct {
	Hosts     []Host // allowed hosts, also of redirects
	AnyHost   bool   // all hosts are allowed, on any port
	PlainHTTP bool   // http: in addition to https:
	// Open opens a sealed value; nil: the caller may not use sealed values. The result is sent only over https: and is in no
	// error. Do wraps an error of Open.
	Open func(ctx context.Context, sealed string) (string, error)

	// Redirected returns a fault if the URL of a redirect is refused; may be nil.
	Redirected func(url string) *fault.Fault

	// Else is the policy for destinations that this policy does not allow; nil: they are refused.
	Else *Policy
	// Advise returns the fix of a refused request. flags has the flags of `pwos cap grant` that allow the request, and
	// enough reports whether a policy allows it. nil: the fix is a fixed text.
	Advise func(flags []string, enough func(*Policy) bool) string
}

// Body is the body of a request. It is opened again for each redirect that keeps it.
type Body struct {
	Size int64 // in bytes; the reader of Open must return exactly as many
	Open func() (io.ReadCloser, error)
}

// Bytes returns a body in memory. b must not be changed until Do has returned.
func Bytes(b []byte) *Body {
	return &Body{Size: int64(len(b)), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}
}

// Response is the response of a server, with any status.
type Response struct {
	Status int
	// Headers has the headers by name in lower case. Values of one name are joined by a comma; those of set-cookie, which may
	// have commas, by a newline.
	Headers map[string]string
	Body    []byte   // the whole body, UTF-8, unless it was spilled
	Spilled bool     // the body is long or not text, and was written to Request.Spill
	Size    int64    // of the decompressed body, in bytes
	Via     []string // origins that redirected, in order, as scheme://host
	URL     string   // the final URL, after redirects; it may have credentials of the caller or the server
}

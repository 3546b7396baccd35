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
	Headers map[string]string // a value that begins with pwenc:v1: is opened by the policy just before it is sent
	Body    *Body             // POST and PUT need one; GET leaves it out
	Timeout time.Duration     // in total; 0 is Limits.Timeout
	Policy  Policy

	// Spill is called once for a body that Response.Body does not hold, and returns where to write
	// it. Whether the data is kept is up to the caller, who learns from Do's error that it is not
	// whole. Without Spill such a body is an error. An error of it or of its Write is returned
	// wrapped.
	Spill func() (io.Writer, error)
}

// Policy is the caller's permission. The zero value allows nothing.
type Policy struct {
	Hosts     []Host // allowed hosts, also of redirects
	AnyHost   bool   // whomever it asks for, on any port
	PlainHTTP bool   // http: in addition to https:
	// Open opens a sealed value; if nil, the caller may not use any. Its result is sent over https:
	// only and appears in no error. Its error is returned wrapped.
	Open func(ctx context.Context, sealed string) (string, error)

	// Redirected returns the objection to a URL that a redirect leads to, or nil.
	Redirected func(url string) *fault.Fault

	// Else is asked about a destination that this policy does not allow; nil: nothing is.
	Else *Policy
	// Advise says how to get a refused request allowed: flags are those of `pwos cap grant` that
	// name it, and enough tells whether a policy would do. If nil, the caller knows.
	Advise func(flags string, enough func(*Policy) bool) string
}

// Body is a request's body, which may be read more than once: each redirect that keeps it opens it again.
type Body struct {
	Size int64 // in bytes; what Open returns must have as many
	Open func() (io.ReadCloser, error)
}

// Bytes is a body in memory. It must not be changed until Do has returned.
func Bytes(b []byte) *Body {
	return &Body{Size: int64(len(b)), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}
}

// Response is a server's response, with any status.
type Response struct {
	Status int
	// Headers have names in lower case. Values of one name are joined by a comma; those of set-cookie, which may hold
	// commas, by a newline, which no value holds.
	Headers map[string]string
	Body    []byte   // the whole body, UTF-8, unless it was spilled
	Spilled bool     // the body was written to Request.Spill: it is long, or is no text
	Size    int64    // of the body in bytes, unpacked
	Via     []string // servers that redirected, in their order, as scheme://host
	URL     string   // what answered, after redirects; it may hold what the caller or the server has put there
}

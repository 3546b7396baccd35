package schema

import (
	"crypto/sha256"
	"encoding/base64"

	"github.com/promptware-os/pwos/schema/fault"
)

// Http is the domain of requests to other servers.
const Http Domain = "http"

// HTTPGrant has the permissions of a process for Http.Fetch. A process without one may fetch nothing.
type HTTPGrant struct {
	Hosts []string `json:"hosts" keep:"always" minlen:"1" maxlen:"260" doc:"Hosts that it may fetch from: api.example.com, *.example.com for all below a name, an address such as 192.0.2.1 or [2001:db8::1], or * for any name. A port may follow; without one it is that of the scheme."`
	Plain bool     `json:"plain,omitzero" keep:"always" doc:"Whether http: is allowed beside https:."`
	Open  bool     `json:"open,omitzero" keep:"always" doc:"Whether a sealed header value is opened for it, just before it is sent over https:."`
}

// HTTPFetchInput is the data of Http.Fetch (MESSAGE appendix D).
type HTTPFetchInput struct {
	Target
	URL     string            `json:"url" keep:"url" minlen:"1" maxlen:"8192" doc:"Address to fetch, such as https://api.example.com/data. http: needs a grant."`
	Method  *string           `json:"method,omitzero" keep:"always" enum:"GET POST PUT DELETE PATCH" doc:"Method. Default GET. POST and PUT need a body."`
	Headers map[string]string `json:"headers,omitzero" keep:"headers" doc:"Headers to send. A value that begins with pwenc:v1: is opened just before it is sent over https:, if the capability allows it; the journal keeps it sealed. Other credentials are not journaled: names with auth, cookie, token, secret, pass, credential, session, api-key, jwt, assertion or otp, and names that end with key except Idempotency-Key. All other values are journaled as sent."`
	Body    *string           `json:"body,omitzero" keep:"always" doc:"Body to send, a string. Not sent with GET."`
	BodyRef *BlobRef          `json:"bodyRef,omitzero" keep:"always" doc:"Body to send, by reference: a file in the blob directory, or data. In place of body."`
	// BodyContent is added by the kernel if a rule reads it, so that the body that is sent is the one that was checked.
	BodyContent *BodyContent `json:"bodyContent,omitzero" keep:"always" doc:"The content of bodyRef, 16 MiB at most: exactly this is sent, or nothing. The kernel adds it if a rule looks at bodyRef."`
	Timeout     *float64     `json:"timeout,omitzero" keep:"always" min:"1" max:"30000" doc:"Timeout of the whole call, in milliseconds. Default 5000, at most 30000."`
}

// BodyContent describes a body by reference.
type BodyContent struct {
	Digest string `json:"digest" keep:"always" maxlen:"64" doc:"SHA-256, in the form sha256-<base64>."`
	Size   int64  `json:"size" keep:"always" min:"0" doc:"Bytes."`
}

// MaxJudgedBody is the longest body by reference that a rule can read, in bytes.
const MaxJudgedBody = 16 << 20

// ContentOf returns the description of a body.
func ContentOf(body []byte) *BodyContent {
	sum := sha256.Sum256(body)
	return &BodyContent{Digest: Integrity(sum[:]), Size: int64(len(body))}
}

// Integrity formats a SHA-256 as W3C Subresource Integrity does.
func Integrity(sum []byte) string { return "sha256-" + base64.StdEncoding.EncodeToString(sum) }

// BlobRef is a BlobPointer in the data of a syscall (MESSAGE 4.3.2).
type BlobRef struct {
	Scheme    string `json:"scheme" keep:"always" enum:"file https data" doc:"Where it is: file or data; the receiver fetches https itself."`
	Path      string `json:"path" keep:"always" minlen:"1" doc:"Absolute path of a file in the blob directory, or what follows data:."`
	Authority string `json:"authority,omitzero" keep:"always" doc:"Host, of https."`
	Query     string `json:"query,omitzero" keep:"always" doc:"Query, of https."`
	Fragment  string `json:"fragment,omitzero" keep:"always" doc:"Fragment, of https."`
}

// Pointer returns r as a BlobPointer, without validation.
func (r *BlobRef) Pointer() BlobPointer { return BlobPointer(*r) }

// Valid returns the fault of an invalid reference, nil if it is valid; field is the name of its member.
func (r *BlobRef) Valid(field string) *fault.Fault {
	p := r.Pointer()
	return p.validate(field)
}

// HTTPFetchOutput is the answer of Http.Fetch.
type HTTPFetchOutput struct {
	Status     int64             `json:"status" keep:"always" doc:"The server's status, 200 to 599. No status makes the call fail."`
	Headers    map[string]string `json:"headers" keep:"always" doc:"Headers of the answer, names in lower case."`
	Body       *string           `json:"body,omitzero" keep:"always" doc:"Body of the answer, if it is text that fits the line."`
	BodyRef    *BlobRef          `json:"bodyRef,omitzero" keep:"always" doc:"Body of the answer, if it is binary or too long: a file in the blob directory."`
	Size       int64             `json:"size" keep:"always" doc:"Bytes of the body, unpacked."`
	Digest     string            `json:"digest" keep:"always" doc:"SHA-256 of the body, in the form sha256-<base64>."`
	URL        string            `json:"url" keep:"always" doc:"Address that answered, after redirects."`
	Via        []string          `json:"via,omitzero" keep:"always" doc:"Servers that redirected, in order, such as https://example.com. Absent if none did."`
	SentDigest string            `json:"sent_digest,omitzero" keep:"always" doc:"SHA-256 of the body that was sent by reference."`
}

// The syscalls of this file.
var (
	HTTPFetch = NewEffect[HTTPFetchInput, HTTPFetchOutput](Syscall{
		Type: "Http.Fetch", Domain: Http,
		Script:      "scripts/audit.txtar",
		Description: "Makes one HTTP request, within limits of time and size. Loopback, private, link-local and reserved addresses are refused, on redirects too. An agent may reach the hosts that its capability lists. Whatever status the server answers with is a reply.",
	}, Syscall{
		Type:        "Http.Fetched",
		Description: "Records the outcome of a request.",
	})
)

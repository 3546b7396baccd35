package cluster

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// A kernel sends requests to other kernels, which answer them. Both are JSON objects in a message of the bus; a header has
// the signature by the sender's host key. The operator of the bus can withhold them, but can neither forge nor change them.
//
// The kernel that answers keeps a session for each other kernel, and accepts each number of a session once, ascending. So
// it refuses a repeated request without reading a clock. The signature of an answer covers the request.

// signatureHeader has the signature of a message.
const signatureHeader = "Pwos-Signature"

// Purposes of signatures, so that a signature for one purpose is invalid for any other.
const (
	requestPurpose = "pwos request 1\n"
	answerPurpose  = "pwos answer 1\n"
)

// request is a request to another kernel.
type request struct {
	From     string         `json:"from"`
	To       string         `json:"to"`
	Session  string         `json:"session"` // "" requests a session
	Number   int64          `json:"number"`  // in the session
	Instance string         `json:"instance"`
	Epoch    int64          `json:"epoch"`
	Letters  []posted       `json:"letters,omitzero"`
	Stream   string         `json:"stream,omitzero" enum:"calls"` // "": of letters. Each stream has its own sessions
	Errand   *schema.Errand `json:"errand,omitzero"`
	Query    *query         `json:"query,omitzero"`
}

// posted is a letter in a request.
type posted struct {
	schema.Posted
	Again bool `json:"again,omitzero"` // it was sent before: the record may have it, whatever would become of it now
}

// callStream is the stream of calls: requests that are made concurrently.
const callStream = "calls"

// query is a call that only reads.
type query struct {
	Type string       `json:"type"`
	Data schema.Value `json:"data"`
}

// answer answers a request.
type answer struct {
	From     string    `json:"from"`
	Session  string    `json:"session"` // for the next request
	Number   int64     `json:"number"`  // the last one that was accepted
	Error    *failure  `json:"error,omitzero"`
	Outcomes []outcome `json:"outcomes,omitzero"`

	Failed *failure     `json:"failed,omitzero"` // of a call: the error that answers it
	Data   schema.Value `json:"data,omitzero"`   // of a call: the reply's data
	Seq    int64        `json:"seq,omitzero"`    // of a query: its entry
}

// failure is an error of the other kernel.
type failure struct {
	ID      string `json:"id"`
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

// outcome says what happened to a letter. The letters after one that was not accepted for now have no outcome.
type outcome struct {
	MsgID  int64    `json:"msg_id"`
	Status string   `json:"status,omitzero"`
	Reason string   `json:"reason,omitzero"`
	Error  *failure `json:"error,omitzero"`
}

var (
	requests = sync.OnceValue(schema.TypeOf[request])
	answers  = sync.OnceValue(schema.TypeOf[answer])
)

// maxFailure bounds the text of an error in an answer, in bytes.
const maxFailure = 2 << 10

func failureOf(f *fault.Fault) *failure {
	text := f.Text()
	if len(text) > maxFailure {
		text = fault.Clip(text)
	}
	return &failure{string(f.ID), int64(f.Code()), text}
}

// fault returns the failure as an error of this kernel.
func (f *failure) fault() *fault.Fault {
	made := &fault.Fault{Kind: fault.KindOf(int(f.Code)), Message: f.Message}
	made.SetID(fault.ID(fault.Clip(f.ID)))
	return made
}

// faultOf is fault with a message that names the kernel that answered, since the PIDs in it are those of that kernel.
func (f *failure) faultOf(kernel string) *fault.Fault {
	made := f.fault()
	made.Message = "the kernel " + kernel + " answers: " + made.Message
	return made
}

// seal returns the signed message of a request or an answer.
func seal(key *access.HostKey, subject, purpose string, about []byte, what any) (*nats.Msg, error) {
	body, err := schema.Marshal(what)
	if err != nil {
		return nil, err
	}
	signature, err := key.Sign(signed(purpose, about, body))
	if err != nil {
		return nil, err
	}
	m := nats.NewMsg(subject)
	m.Data = body
	m.Header.Set(signatureHeader, base64.StdEncoding.EncodeToString(signature))
	return m, nil
}

// verified reports whether a message is signed by a key.
func verified(key access.PublicKey, purpose string, about []byte, m *nats.Msg) bool {
	signature, err := base64.StdEncoding.DecodeString(m.Header.Get(signatureHeader))
	raw := key.Ed25519()
	return err == nil && raw != nil && ed25519.Verify(raw, signed(purpose, about, m.Data), signature)
}

// signed returns the text to sign: the purpose, the digest of the answered request, if any, and the body.
func signed(purpose string, about, body []byte) []byte {
	text := []byte(purpose)
	if about != nil {
		digest := sha256.Sum256(about)
		text = append(text, digest[:]...)
	}
	return slices.Concat(text, body)
}

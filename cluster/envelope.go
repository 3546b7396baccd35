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

// A request goes from kernel to kernel, and an answer back. Each is a JSON object in a message of the bus, and its signature by
// the host key of the kernel that sends it is a header: the operator of the bus can withhold them, but neither make nor change them.
//
// The kernel that answers keeps a session for each other kernel, and takes each number of a session once, ascending. So a
// repeated request is refused, with no clock involved. An answer's signature covers the request.

// signatureHeader has the signature of a message.
const signatureHeader = "Pwos-Signature"

// What signatures are for, so that none can be used for anything else.
const (
	requestPurpose = "pwos request 1\n"
	answerPurpose  = "pwos answer 1\n"
)

// request is what a kernel asks of another one.
type request struct {
	From     string          `json:"from"`
	To       string          `json:"to"`
	Session  string          `json:"session"` // "" asks for the session
	Number   int64           `json:"number"`  // in the session
	Instance string          `json:"instance"`
	Epoch    int64           `json:"epoch"`
	Letters  []schema.Posted `json:"letters,omitzero"`
	Stream   string          `json:"stream,omitzero" enum:"calls"` // "": of letters. Each stream has its own sessions
	Errand   *schema.Errand  `json:"errand,omitzero"`
	Query    *query          `json:"query,omitzero"`
}

// callStream is the stream of calls: requests that are made side by side.
const callStream = "calls"

// query is a call that only reads.
type query struct {
	Type string       `json:"type"`
	Data schema.Value `json:"data"`
}

// answer answers a request.
type answer struct {
	From     string    `json:"from"`
	Session  string    `json:"session"` // in which the next request is to be made
	Number   int64     `json:"number"`  // the last one that it has taken
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

// outcome says what happened to a letter. The letters behind one that was not taken for now have none.
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

func failureOf(f *fault.Fault) *failure {
	return &failure{string(f.ID), int64(f.Code()), f.Text()}
}

// fault is the failure as an error of this kernel.
func (f *failure) fault() *fault.Fault {
	made := &fault.Fault{Kind: fault.KindOf(int(f.Code)), Message: f.Message}
	made.SetID(fault.ID(fault.Clip(f.ID)))
	return made
}

// faultOf is fault, which says that the kernel answered with it: its PIDs are those of that kernel.
func (f *failure) faultOf(kernel string) *fault.Fault {
	made := f.fault()
	made.Message = "the kernel " + kernel + " answers: " + made.Message
	return made
}

// seal makes the message of a request or an answer.
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

// signed is the text that is signed: the purpose, the digest of the request that is answered, if any, and the body.
func signed(purpose string, about, body []byte) []byte {
	text := []byte(purpose)
	if about != nil {
		digest := sha256.Sum256(about)
		text = append(text, digest[:]...)
	}
	return slices.Concat(text, body)
}

package schema

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsonschema"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// The syscalls of this file.
var (
	SyscallRegister = NewCommand[RegisterInput, RegisterOutput](Syscall{
		Type: "Syscall.Register", Aliases: []string{"Sys.Register"}, Domain: Kernel, Grant: ByName, Barrier: true,
		Script:      "scripts/register.txtar",
		Description: "Adds a syscall at run time, provided by code, by this connection or by a tool below root. The same registration again makes this connection its provider.",
	})

	SyscallUnregister = NewCommand[UnregisterInput, SuccessOutput](Syscall{
		Type: "Syscall.Unregister", Domain: Kernel, Barrier: true,
		Script:      "scripts/register.txtar",
		Description: "Removes a registered syscall. Only its owner and the operator may.",
	})

	SyscallComplete = NewCommand[CompleteInput, SuccessOutput](Syscall{
		Type: "Syscall.Complete", Domain: Kernel, Grant: Everyone,
		Script:      "scripts/register.txtar",
		Description: "Answers a call that this connection received with Syscall.Requested. It takes effect at once, whatever the connection waits for.",
	})

	SyscallProgress = NewCommand[ProgressInput, SuccessOutput](Syscall{
		Type: "Syscall.Progress", Domain: Kernel, Grant: Everyone,
		Script:      "scripts/register.txtar",
		Description: "Reports the progress of a call that this connection runs. It is passed on to a caller that asked for progress, and is not recorded.",
	})

	SyscallInvoke = NewEffect[InvokeInput, Value](Syscall{
		Type: "Syscall.Invoke", Domain: Kernel, Internal: true,
		Description: "The call of a registered syscall, as the journal has it.",
	}, Syscall{
		Type:        "Syscall.Invoked",
		Description: "Ends the call of a registered syscall: records what its provider answered.",
	})
)

// SyscallRequested is the event that requests a provider to run a call. Its data is a RequestedEvent.
const SyscallRequested = "Syscall.Requested"

// Connection is the provider of a registered syscall that is a connection.
const Connection = "connection"

// RegisterInput is the data of Syscall.Register.
type RegisterInput struct {
	Name         string  `json:"name" keep:"always" minlen:"3" maxlen:"128" doc:"Name of the new syscall, Domain.Action, in a domain that is not the kernel's; or a path mcp/NAME or mcp/NAME/TOOL, which the operator registers and the agent mcp.NAME provides."`
	Kind         *string `json:"kind,omitzero" keep:"always" enum:"command query" doc:"command: it may change something. query: it only reads. This or type is required."`
	Type         *string `json:"type,omitzero" keep:"always" enum:"command query" doc:"The same by the name that OsEvent has for it."`
	Input        Value   `json:"input,omitzero" keep:"always" doc:"JSON Schema of its data. This or inputSchema is required."`
	InputSchema  Value   `json:"inputSchema,omitzero" keep:"always" doc:"The same as input."`
	Output       Value   `json:"output,omitzero" keep:"always" doc:"JSON Schema of what it answers. Default: any JSON value."`
	OutputSchema Value   `json:"outputSchema,omitzero" keep:"always" doc:"The same as output."`
	Description  *string `json:"description,omitzero" keep:"always" maxlen:"4096" doc:"What it does."`
	Provider     *string `json:"provider,omitzero" keep:"always" enum:"connection" doc:"connection: calls come to this connection as Syscall.Requested, and are answered with Syscall.Complete. This, code or path is required."`
	Code         *string `json:"code,omitzero" keep:"applied" minlen:"1" maxlen:"65536" doc:"TypeScript that exports handler, a function of the data that returns the answer. It has no authority of its own."`
	Path         *string `json:"path,omitzero" keep:"always" minlen:"1" maxlen:"1024" doc:"A tool below root that carries out calls, such as os/tools/sum. Operator only."`
}

// RegisterOutput is the answer of Syscall.Register.
type RegisterOutput struct {
	Registered    bool   `json:"registered" keep:"always" doc:"Always true: a failure is an error message."`
	Name          string `json:"name" keep:"always" doc:"Name of the syscall."`
	Introspection Value  `json:"introspection" keep:"always" doc:"What Syscall.Describe answers about it."`
}

// UnregisterInput is the data of Syscall.Unregister.
type UnregisterInput struct {
	Name string `json:"name" keep:"always" minlen:"3" maxlen:"128" doc:"Name of a registered syscall."`
}

// CompleteInput is the data of Syscall.Complete. Its content is recorded with the outcome of the call.
type CompleteInput struct {
	CallID  string         `json:"call_id" keep:"always" minlen:"1" maxlen:"64" doc:"The call, as Syscall.Requested named it."`
	Data    Value          `json:"data,omitzero" keep:"never" doc:"What the caller is answered. This, dataRef or error is required."`
	DataRef *BlobRef       `json:"dataRef,omitzero" keep:"always" doc:"The answer, by reference: a file in the blob directory that holds one JSON value of at most 16777216 bytes. It is read before this is answered."`
	Error   *ProviderError `json:"error,omitzero" keep:"always" doc:"Why the call failed: its caller gets an error 502 with the message, or 503."`
}

// ProviderError is the error of a provider for a call.
type ProviderError struct {
	Code    *int64 `json:"code,omitzero" keep:"always" min:"400" max:"599" doc:"503: what the call needs is not available, and nothing was done. Another is of the provider's own, and the message shows it."`
	Message string `json:"message" keep:"never" minlen:"1" maxlen:"2048" doc:"What went wrong."`
}

// RequestedEvent is the data of Syscall.Requested.
type RequestedEvent struct {
	CallID string `json:"call_id"`
	Type   string `json:"type"`
	Data   Value  `json:"data"`
	PID    int64  `json:"pid"` // the caller
	// Digest is the digest of the registration, if it is below mcp/: the tools of its provider may have changed since.
	Digest string `json:"digest,omitzero"`
	// Progress is true if the caller requests progress reports.
	Progress bool `json:"progress,omitzero"`
}

// ProgressInput is the data of Syscall.Progress.
type ProgressInput struct {
	CallID   string   `json:"call_id" keep:"always" minlen:"1" maxlen:"64" doc:"The call, as Syscall.Requested named it."`
	Progress float64  `json:"progress" keep:"always" doc:"Progress so far; it grows each time."`
	Total    *float64 `json:"total,omitzero" keep:"always" doc:"Progress at the end, if that is known."`
	Message  *string  `json:"message,omitzero" keep:"never" maxlen:"1024" doc:"What is being done."`
}

// SyscallProgressed is the event with the progress of a call of a registered syscall, for calls with progress: true in the metadata.
// Its data is a ProgressedEvent.
const SyscallProgressed = "Syscall.Progressed"

// ProgressedEvent is the data of Syscall.Progressed.
type ProgressedEvent struct {
	ID       string   `json:"id"` // of the call's message
	Progress float64  `json:"progress"`
	Total    *float64 `json:"total,omitzero"`
	Message  *string  `json:"message,omitzero"`
}

// SyscallCancelled is the event that tells a provider that a call was canceled because its caller disconnected or
// its time limit passed. Its data is a CancelledEvent.
const SyscallCancelled = "Syscall.Cancelled"

// CancelledEvent is the data of Syscall.Cancelled.
type CancelledEvent struct {
	CallID string `json:"call_id"`
}

// NoCall returns the fault of an answer or a progress report for a call that is not in flight.
func NoCall(id string) *fault.Fault {
	return fault.ProviderNoCall.New("no call %q waits for this connection: it was answered, has ended, or is another's", fault.Clip(id)).With("call_id", id)
}

// InvokeInput is the data of the kernel's own Syscall.Invoke.
type InvokeInput struct {
	Target
	Name     string `json:"name" keep:"always" doc:"Name of the registered syscall."`
	Kind     string `json:"kind" keep:"always" enum:"command query" doc:"What it was called as."`
	Data     Value  `json:"data" keep:"always" doc:"The data of the call."`
	Describe *bool  `json:"describe,omitzero" keep:"always" doc:"Whether to describe it instead of calling it."`
}

// Called returns the name of the syscall of a journaled message: the registered name, or the type.
func (m *Message) Called() string {
	if m.Type != SyscallInvoke.Type {
		return m.Type
	}
	in, err := TypeOf[InvokeInput]().Decode(m.Data)
	if err != nil {
		return m.Type
	}
	return in.(*InvokeInput).Name
}

// Registration is a registered syscall.
type Registration struct {
	Name        string  `json:"name" keep:"always"`
	Owner       int64   `json:"owner" keep:"always"` // the process that registered it first
	Kind        string  `json:"kind" keep:"always"`
	Input       Value   `json:"input" keep:"always"`
	Output      Value   `json:"output" keep:"always"`
	Description string  `json:"description" keep:"always"`
	Path        *string `json:"path,omitzero" keep:"always"` // path of the tool that provides it; nil: code or a connection provides it
	Code        *string `json:"code,omitzero" keep:"always"` // TypeScript that provides it; nil: a tool or a connection provides it

	input, output func() *jsonschema.Schema // compiled on first use; an invalid schema accepts everything
}

// Own returns a copy of r that shares no memory with it, and compiles its schemas.
func (r *Registration) Own() *Registration {
	c := *r
	c.Input, c.Output = slices.Clone(r.Input), slices.Clone(r.Output)
	c.input, c.output = checking(c.Input), checking(c.Output)
	return &c
}

func checking(text Value) func() *jsonschema.Schema {
	return sync.OnceValue(func() *jsonschema.Schema {
		s, _ := jsonschema.Compile(text) // an old registration may have an invalid schema
		return s
	})
}

// CheckInput returns the fault of call data that does not match the input schema, nil if it matches.
func (r *Registration) CheckInput(data []byte) *fault.Fault {
	if s := r.input(); s != nil {
		if m := s.Check(data); m != nil {
			return jsontype.Invalid(cmp.Or(m.At, "data"), "%s", m.Why)
		}
	}
	return nil
}

// CheckOutput returns the fault of an answer that does not match the output schema, nil if it matches.
func (r *Registration) CheckOutput(data []byte) *fault.Fault {
	if s := r.output(); s != nil {
		if m := s.Check(data); m != nil {
			return fault.ProviderBadAnswer.New("the provider of %s answered what its output schema does not allow: %s %s", r.Name, fault.Clip(cmp.Or(m.At, "data")), m.Why).
				With("syscall", r.Name)
		}
	}
	return nil
}

// Digest returns the SHA-256 of r without its owner.
func (r *Registration) Digest() string {
	h := sha256.New()
	for _, part := range []string{r.Name, r.Kind, r.Description, string(r.Input), string(r.Output)} {
		fmt.Fprintf(h, "%d:%s", len(part), part) // a hash never fails
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Tool returns the answer of a Syscall.Call that requests a description of r.
func (r *Registration) Tool() *ToolDescription {
	return &ToolDescription{
		ToolManifest: ToolManifest{Name: r.Name, Description: r.Description, Input: r.Input, Output: r.Output},
		URI:          "os:///" + r.Name, Digest: r.Digest(), Kind: Connection,
	}
}

// Describe returns the answer of Syscall.Describe for r in dialect d.
func (r *Registration) Describe(d Dialect) DescribeOutput {
	return DescribeOutput{Name: r.Name, Kind: r.Kind, Description: r.Description, Input: r.Input, Output: r.Output, dialect: d}
}

// ownDomains returns the domains of types that are reserved for the kernel.
var ownDomains = sync.OnceValue(func() map[string]bool {
	own := make(map[string]bool)
	for typ := range table().byType {
		domain, _, _ := strings.Cut(typ, ".")
		own[domain] = true
	}
	for _, domain := range []string{"Approval", "Budget", "Event", "Host", "Job", "Message", "Policy", "Validation"} {
		own[domain] = true
	}
	return own
})

// Registrable reports whether a registered syscall may have the type name.
func Registrable(name string) bool {
	domain, _, _ := strings.Cut(name, ".")
	return ValidType(name) && !ownDomains()[domain]
}

// Registered changes m, the call of a registered syscall, to the message that is journaled. m.Sent has the type that the
// answer repeats.
func (m *Message) Registered() (*Syscall, any, *fault.Fault) {
	if !ValidWithin(m.Data, MaxKeptDepth) {
		return nil, nil, jsontype.Invalid(m.Dialect.names().data, "must not be nested deeper than %d levels", MaxKeptDepth)
	}
	return m.invokes(&InvokeInput{Name: m.Type, Kind: m.Kind.String(), Data: m.Data})
}

// Provided changes m, the Syscall.Call of a registered path, to the message that is journaled.
func (m *Message) Provided(call *CallInput, r *Registration) (*Syscall, any, *fault.Fault) {
	in := &InvokeInput{Target: call.Target, Name: r.Name, Kind: r.Kind, Data: Value("{}"), Describe: call.Describe}
	switch {
	case len(call.Args) > 1:
		return nil, nil, jsontype.Invalid("args", "has %d values: %s takes one", len(call.Args), r.Name)
	case len(call.Args) == 1:
		in.Data = call.Args[0]
	}
	return m.invokes(in)
}

func (m *Message) invokes(in *InvokeInput) (*Syscall, any, *fault.Fault) {
	data, err := Marshal(in)
	if err != nil {
		return nil, nil, fault.Of(err)
	}
	m.Sent, m.Kind, m.Type, m.Data = m.Type, KindCommand, SyscallInvoke.Type, data
	return SyscallInvoke.Syscall, in, nil
}

package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// PingInput is the data of Syscall.Ping.
type PingInput struct {
	Payload Value `json:"payload" keep:"always" doc:"Any JSON value. It comes back byte for byte."`
}

// PingOutput is the answer of Syscall.Ping.
type PingOutput struct {
	Payload Value `json:"payload" keep:"always" doc:"The payload of the request, byte for byte."`
}

// AppendJSON appends the answer with the payload as it was written.
func (o PingOutput) AppendJSON(dst []byte) []byte {
	dst = slices.Grow(dst, len(`{"payload":}`)+len(o.Payload))
	return append(append(append(dst, `{"payload":`...), o.Payload...), '}')
}

// EchoInput is the data of Syscall.Echo.
type EchoInput struct {
	Message string `json:"message" keep:"always" doc:"Text to echo. Any string is accepted."`
}

// EchoOutput is the answer of Syscall.Echo.
type EchoOutput struct {
	Echo string `json:"echo" keep:"always" doc:"The message of the request."`
}

// ListInput is the data of Syscall.List.
type ListInput struct {
	Follow *bool `json:"follow,omitzero" keep:"always" doc:"Whether to push Syscall.Listed, with the data of this answer, at once and after each grant that changes it. The expiry of a token is not pushed."`
}

// SyscallListed is the event of a following Syscall.List. Its data is a ListOutput.
const SyscallListed = "Syscall.Listed"

// ListOutput is the answer of Syscall.List.
type ListOutput struct {
	Syscalls []string `json:"syscalls" keep:"always" doc:"Names of the syscalls that the caller may call, sorted."`
	Paths    []string `json:"paths,omitzero" keep:"always" doc:"User-space syscalls that it may call, sorted: granted paths and patterns, such as mcp/fs/read or mcp/fs/*, and what is registered below them. Absent if there are none."`
	Schemas  string   `json:"schemas,omitzero" keep:"always" doc:"SHA-256 over the Syscall.Describe answers of the kernel's own syscalls, one a line, to compare with a generated client (PROTOCOL 11). Not in Syscall.Listed."`
}

// ListWatchInput is the data of the kernel's own Capability.Watch.
type ListWatchInput struct {
	Seen string `json:"seen" keep:"always" doc:"SHA-256 of the last push; empty before the first."`
}

// DescribeInput is the data of Syscall.Describe.
type DescribeInput struct {
	Name string `json:"name" keep:"always" minlen:"1" doc:"Name of a syscall, such as Memory.Set. Syscall.List has them all."`
}

// DescribeOutput is the answer of Syscall.Describe. In an OsEvent answer the member kind is named type (EVENT 4.8).
type DescribeOutput struct {
	Name        string `json:"name" keep:"always" doc:"Name of the syscall."`
	Kind        string `json:"kind" keep:"always" enum:"command query" doc:"command: it changes state. query: it only reads."`
	Description string `json:"description" keep:"always" doc:"What the syscall does."`
	Input       Value  `json:"input" keep:"always" doc:"JSON Schema of the request's data."`
	Output      Value  `json:"output" keep:"always" doc:"JSON Schema of the reply's data."`

	dialect Dialect
}

// Describe returns the answer of Syscall.Describe for s in dialect d.
func (s *Syscall) Describe(d Dialect) DescribeOutput {
	return DescribeOutput{
		Name: s.Type, Kind: s.Kind.word(d), Description: s.Description,
		Input: s.Input().AppendJSONSchema(nil), Output: s.Output().AppendJSONSchema(nil), dialect: d,
	}
}

// Fingerprint returns the SHA-256, in hex, of the answers of Syscall.Describe for all callable syscalls of the kernel, in
// the order of their names, one per line.
var Fingerprint = sync.OnceValue(func() string {
	digest := sha256.New()
	for _, row := range Syscalls() {
		if row.Callable() {
			digest.Write(append(row.Describe(OsMessage).AppendJSON(nil), '\n'))
		}
	}
	return hex.EncodeToString(digest.Sum(nil))
})

// AppendJSON appends the description; the dialect names the member kind.
func (o DescribeOutput) AppendJSON(dst []byte) []byte {
	dst = jsontype.AppendString(append(dst, `{"name":`...), o.Name)
	dst = append(append(append(dst, `,"`...), o.dialect.names().kind...), `":`...)
	dst = jsontype.AppendString(dst, o.Kind)
	dst = jsontype.AppendString(append(dst, `,"description":`...), o.Description)
	dst = append(append(dst, `,"input":`...), o.Input...)
	dst = append(append(dst, `,"output":`...), o.Output...)
	return append(dst, '}')
}

// ShutdownInput is the data of Syscall.Shutdown.
type ShutdownInput struct{}

// SuccessOutput is the answer of a command without other data.
type SuccessOutput struct {
	Success bool `json:"success" keep:"always" doc:"Always true: a failure is an error message."`
}

// AppendJSON appends the answer, which is constant.
func (SuccessOutput) AppendJSON(dst []byte) []byte { return append(dst, `{"success":true}`...) }

// Target is embedded in the data of every syscall that the operator may make for a process (PROTOCOL 5).
type Target struct {
	PID  *int64 `json:"pid,omitzero" keep:"always" min:"0" doc:"The process to act as: the operator may name any, an agent only itself. Default: the caller."`
	Tick *int64 `json:"tick,omitzero" keep:"always" min:"0" doc:"The tick of the call. The operator's advances the kernel's clock; an agent's must not be later than the clock."`
}

// On returns the target. It implements Targeted.
func (t *Target) On() *Target { return t }

// Targeted is an input with a Target.
type Targeted interface{ On() *Target }

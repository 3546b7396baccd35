package process

import (
	"bytes"
	"fmt"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Hydrate is what FileSystem.Hydrate needs done outside. It ends in a schema.HydrateOutput.
type Hydrate struct {
	URI, Base string
	// FrontMatter is what the store has of the resource, a JSON object; "" where it is to be fetched.
	FrontMatter string
}

// hydrate begins FileSystem.Hydrate. Of what a process has adopted the front matter is that of then, whatever lies there
// now.
func (d *Domain) hydrate(call *kernel.Call, in *schema.HydrateInput) (kernel.Result, error) {
	if err := d.able(call.PID); err != nil {
		return kernel.Result{}, err
	}
	is := d.identity(call.PID, call.Origin)
	switch {
	case in.URI != nil:
		return kernel.Begin(&Hydrate{URI: *in.URI, Base: d.base(call.PID, call.Origin)}), nil
	case is == nil:
		return kernel.Result{}, kernel.Invalid("uri", "is missing: pid %d has adopted nothing that could be hydrated: name a resource, or ingest one first", call.PID)
	}
	kept, ok := d.contexts.get(d.originOf(call, call.PID), is.ContextID)
	if !ok {
		return kernel.Result{}, fmt.Errorf("hydrate: the context store has lost %s", is.ContextID)
	}
	return kernel.Begin(&Hydrate{URI: is.URI, FrontMatter: kept.frontMatter}), nil
}

// Tool is what a Syscall.Call of a path needs done outside. It ends in a schema.ToolCall.
type Tool struct {
	Path, Base string
	Input      []byte // one JSON value
	AgentID    string // whom a program runs as
	Describe   bool   // it is to describe itself, or the file beside it to describe it
}

// tool begins a Syscall.Call of a path: short names do not come here, the messages that they stand for go their own way.
func (d *Domain) tool(call *kernel.Call, in *schema.CallInput) (kernel.Result, error) {
	if err := d.able(call.PID); err != nil {
		return kernel.Result{}, err
	}
	run := &Tool{Path: in.Syscall, Base: d.base(call.PID, call.Origin), Input: arguments(in.Args), AgentID: "operator", Describe: in.Describe != nil && *in.Describe}
	if p, ok := d.table.processes.Get(call.PID); ok {
		run.AgentID = p.AgentID
	}
	return kernel.Begin(run), nil
}

// arguments make the input of a tool: nothing null, one argument that, several an array of them. It is a copy: the call
// may be gone before the tool has read it.
func arguments(args []schema.Value) []byte {
	switch len(args) {
	case 0:
		return []byte("null")
	case 1:
		return bytes.Clone(args[0])
	}
	list := []byte{'['}
	for i, arg := range args {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, arg...)
	}
	return append(list, ']')
}

// called decides Syscall.Called: of what is recorded the caller gets what the tool answered, or why it did not.
func called(data []byte) (kernel.Result, error) {
	in, fault := schema.TypeOf[schema.ToolCall]().Decode(data)
	if fault != nil {
		return kernel.Result{}, fmt.Errorf("read what came of a tool: %w", fault)
	}
	outcome, fault := schema.DecodeOutcome(in.(*schema.ToolCall).Outcome)
	switch {
	case fault != nil:
		return kernel.Result{}, fmt.Errorf("read what came of a tool: %w", fault)
	case outcome.Err != nil:
		return kernel.Result{}, outcome.Err
	}
	return kernel.Result{Data: bytes.Clone(outcome.Data)}, nil
}

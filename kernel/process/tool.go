package process

import (
	"bytes"
	"fmt"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Hydrate is the work of FileSystem.Hydrate outside the kernel. It ends in a schema.HydrateOutput.
type Hydrate struct {
	URI, Base string
	// FrontMatter is the resource's front matter in the store, a JSON object; "" if it must be fetched.
	FrontMatter string
}

// hydrate begins FileSystem.Hydrate. The front matter of an adopted resource is that of its adoption, whatever is
// there now.
func (d *Domain) hydrate(call *kernel.Call, in *schema.HydrateInput) (*Hydrate, error) {
	if err := d.able(call.PID); err != nil {
		return nil, err
	}
	is := d.identity(call.PID, call.Origin)
	switch {
	case in.URI != nil:
		return &Hydrate{URI: *in.URI, Base: d.base(call.PID, call.Origin)}, nil
	case is == nil:
		return nil, kernel.Invalid("uri", "is missing: pid %d has adopted nothing that could be hydrated: name a resource, or ingest one first", call.PID)
	}
	kept, ok := d.contexts.get(d.originOf(call.PID, call.Origin), is.ContextID)
	if !ok {
		return nil, fmt.Errorf("hydrate: the context store has lost %s", is.ContextID)
	}
	return &Hydrate{URI: is.URI, FrontMatter: kept.frontMatter}, nil
}

// Tool is the work of a Syscall.Call of a path. It ends in a schema.ToolCall.
type Tool struct {
	Path, Base string
	Input      []byte // one JSON value
	AgentID    string // of the agent that a program runs as
	Describe   bool   // the tool describes itself, or the file next to it does
}

// tool begins a Syscall.Call of a path; short names are sent as the messages that they mean.
func (d *Domain) tool(call *kernel.Call, in *schema.CallInput) (*Tool, error) {
	if err := d.able(call.PID); err != nil {
		return nil, err
	}
	run := &Tool{Path: in.Syscall, Base: d.base(call.PID, call.Origin), Input: bytes.Clone(in.Input()), AgentID: "operator", Describe: in.Describe != nil && *in.Describe}
	if p, ok := d.table.processes.Get(call.PID); ok {
		run.AgentID = p.AgentID
	}
	return run, nil
}

// called answers the end of a Syscall.Call: the caller gets the tool's answer, or why there is none.
func called(_ *kernel.Call, end *schema.EffectEnd) (schema.Value, error) {
	data, failure := end.Result()
	if failure != nil {
		return nil, failure
	}
	in, err := schema.TypeOf[schema.ToolCall]().Decode(data)
	if err != nil {
		return nil, fmt.Errorf("read the outcome of a tool: %w", err)
	}
	outcome, err := schema.DecodeOutcome(in.(*schema.ToolCall).Outcome)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the outcome of a tool: %w", err)
	case outcome.Err != nil:
		return nil, outcome.Err
	}
	return bytes.Clone(outcome.Data), nil
}

package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/uri"
	"github.com/promptware-os/pwos/usercall"
)

// call runs a tool, and records which one it was, also where its call came to nothing.
func (p *promptware) call(ctx context.Context, job *actors.Job) ([]byte, error) {
	do := job.Do.(*process.Tool)
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	tools := p.tools
	if p.host != nil {
		programs, err := p.host()
		if err != nil {
			return nil, err
		}
		tools.Programs = &usercall.Programs{Host: programs, Scratch: p.scratch, Private: p.private}
	}
	if err := authorize(&tools, do, job); err != nil {
		return nil, err
	}
	made, err := use(ctx, &tools, do, job.PID)
	if err == nil && !schema.ValidWithin(made.output, schema.MaxKeptDepth) {
		err = &usercall.ToolError{URI: made.uri, Digest: made.digest, Err: fmt.Errorf("%w: nested deeper than %d levels", usercall.ErrNotJSON, schema.MaxKeptDepth)}
	}
	if err == nil {
		return record(made.uri, made.digest, &schema.Outcome{Data: made.output})
	}
	why := callFault(ctx, err)
	tool, ran := errors.AsType[*usercall.ToolError](err)
	if name, ok := errors.AsType[*uri.NameError](err); ok && why.Field == "uri" {
		why = kernel.Invalid("syscall", "%q cannot be resolved: %v", name.Name, name.Err)
	}
	if !ran {
		return nil, why
	}
	p.log.Info("tool failed", "tool", tool.URI, "digest", tool.Digest, "pid", job.PID, "error", why.Message, "said", tool.Said)
	return record(tool.URI, tool.Digest, &schema.Outcome{Err: why})
}

// authorize refuses the call of a tool that the caller's token does not name. A name that means nothing is for the call to tell.
func authorize(tools *usercall.Caller, do *process.Tool, job *actors.Job) error {
	at, err := tools.Space.Resolve(do.Path, do.Base)
	if err != nil {
		return nil
	}
	if denied := kernel.AuthorizeCall(job.PID, job.Token, at.URI, job.Tick); denied != nil {
		return denied
	}
	return nil
}

// used is what came of a tool, and which it was.
type used struct {
	uri, digest string
	output      []byte
}

// use calls a tool, or has it described.
func use(ctx context.Context, tools *usercall.Caller, do *process.Tool, pid int64) (used, error) {
	request := usercall.Request{Path: do.Path, Base: do.Base, Input: do.Input, PID: pid, AgentID: do.AgentID}
	if !do.Describe {
		result, err := tools.Call(ctx, request)
		if err != nil {
			return used{}, err
		}
		return used{result.URI, result.Digest, result.Output}, nil
	}
	is, err := tools.Describe(ctx, request)
	if err != nil {
		return used{}, err
	}
	data, err := schema.Marshal(&schema.ToolDescription{ToolManifest: *is.Manifest, URI: is.URI, Digest: is.Digest, Kind: string(is.Kind)})
	return used{is.URI, is.Digest, data}, err
}

func record(uri, digest string, outcome *schema.Outcome) ([]byte, error) {
	return schema.Marshal(&schema.ToolCall{URI: uri, Digest: digest, Outcome: schema.AppendOutcome(nil, schema.KindCommand, outcome)})
}

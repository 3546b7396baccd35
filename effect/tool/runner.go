package tool

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Runner runs Syscall.Call for tools.
type Runner struct {
	caller   Caller
	programs func() (*Programs, error)
	log      *slog.Logger
	slots    chan struct{} // has a value for each running tool of an agent
	own      chan struct{} // likewise, of the operator, which waits for no agent
}

// NewRunner returns a runner that runs at most atOnce tools of agents, and as many of the operator, at a time; 0: half the number of
// processors. A module runs on the kernel's
// threads: with a module on every processor, the kernel would wait for tens of milliseconds at a time. programs returns the Programs
// of a call; nil: those of caller.
func NewRunner(caller Caller, atOnce int, programs func() (*Programs, error), log *slog.Logger) *Runner {
	most := cmp.Or(atOnce, max(1, runtime.GOMAXPROCS(0)/2))
	return &Runner{caller: caller, programs: programs, log: log, slots: make(chan struct{}, most), own: make(chan struct{}, most)}
}

// Close frees the engine of modules. There must be no calls in flight.
func (r *Runner) Close() error { return r.caller.Modules.Close() }

// Call runs or describes a tool that the caller's token allows. If the tool was found, the result has its URI, digest and outcome, even
// if it failed.
func (r *Runner) Call(ctx context.Context, job *kernel.Job, do *process.Tool) (*schema.ToolCall, error) {
	slots := r.slots
	if job.PID == kernel.Operator {
		slots = r.own
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	at, err := r.caller.Space.ResolveMember("syscall", do.Path, do.Base)
	if err != nil {
		return nil, err
	}
	if denied := kernel.AuthorizeCall(job.PID, job.Token, at.URI, job.Tick); denied != nil {
		return nil, denied
	}
	caller := r.caller
	if r.programs != nil {
		if caller.Programs, err = r.programs(); err != nil {
			return nil, err
		}
	}
	call := caller.Call
	if do.Describe {
		call = caller.Describe
	}
	result, err := call(ctx, Request{Path: do.Path, Base: do.Base, Input: do.Input, PID: job.PID, AgentID: do.AgentID})
	if result == nil {
		return nil, err
	}
	outcome := schema.Outcome{Data: result.Output}
	if err == nil && do.Describe {
		outcome.Data, err = schema.Marshal(&schema.ToolDescription{ToolManifest: *result.Manifest, URI: result.URI, Digest: result.Digest, Kind: string(result.Kind)})
	}
	if err == nil && !schema.ValidWithin(outcome.Data, schema.MaxKeptDepth) {
		err = fault.ToolBadOutput.New("call %s: the output is nested deeper than %d levels", result.URI, schema.MaxKeptDepth)
	}
	if err != nil {
		outcome = schema.Outcome{Err: fault.Of(err)}
		r.log.Info("tool failed", "tool", result.URI, "digest", result.Digest, "pid", job.PID, "error", err, "said", result.Said)
	}
	return &schema.ToolCall{URI: result.URI, Digest: result.Digest, Outcome: schema.AppendOutcome(nil, schema.KindCommand, &outcome)}, nil
}

// Invoke runs the tool that provides a registered syscall. The caller needs no grant for the tool itself.
func (r *Runner) Invoke(ctx context.Context, job *kernel.Job, do *kernel.Invocation) (schema.Value, error) {
	own := *job
	own.Token = &kernel.Token{Granted: schema.Token{PID: job.PID, TokenGrant: schema.TokenGrant{AllowedSyscalls: []string{schema.CallType}}}}
	done, err := r.Call(ctx, &own, &process.Tool{Path: *do.Path, Input: do.Data, AgentID: do.Name})
	if err != nil {
		return nil, err
	}
	outcome, failed := schema.DecodeOutcome(done.Outcome)
	if failed != nil {
		return nil, failed
	}
	if outcome.Err != nil {
		return nil, outcome.Err
	}
	return outcome.Data, nil
}

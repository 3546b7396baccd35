package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/promptware-os/pwos/internal/turns"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// The most effects that run at a time. Others wait for their turn.
const (
	maxEffectsEach = 16 // of one process, so that none takes all
	maxEffects     = 64 // of all agents; the operator's are not among them
)

// runs are the effects that run outside the kernel. Each has a goroutine, which ends by sending a command with the outcome;
// the audit log answers the call when that is on disk.
type runs struct {
	kernel  *Kernel
	runners map[string]kernel.Runner
	begins  map[string]func(do any) // see Config.Begins
	ends    map[string]func(do any) // see Config.Ends
	log     *slog.Logger
	turns   *turns.Turns
	codes   *turns.Turns // of calls whose handlers are registered code
	ending  context.Context
	cancel  context.CancelCauseFunc
	alive   sync.WaitGroup
}

func newRuns(k *Kernel, runners map[string]kernel.Runner) *runs {
	r := &runs{kernel: k, runners: runners, log: k.log.With("component", "effects"), turns: turns.New(maxEffectsEach, maxEffects, kernel.Operator)}
	r.codes = turns.New(max(1, k.code.AtOnce/2), max(1, k.code.AtOnce), kernel.Operator)
	r.ending, r.cancel = context.WithCancelCause(context.Background())
	return r
}

// end cancels all effects, including those that have not started.
func (r *runs) end() { r.cancel(kernel.ErrStopping) }

// begin runs the effect of b, whose intent is on disk, and takes ownership of b.
func (r *runs) begin(b *frames) {
	if call := &b.calls[0]; r.begins[call.Message.Type] != nil {
		r.begins[call.Message.Type](call.Effect.Run)
	}
	r.alive.Add(1)
	r.kernel.loop.background(func() {
		defer r.alive.Done()
		r.run(b)
	})
}

// run runs one effect and journals its outcome.
func (r *runs) run(b *frames) {
	call := &b.calls[0]
	ctx, cancel := context.WithCancelCause(b.ctx)
	defer cancel(nil)
	if r.ending.Err() != nil {
		cancel(kernel.ErrStopping)
	}
	defer context.AfterFunc(r.ending, func() { cancel(kernel.ErrStopping) })()

	end := &schema.EffectEnd{Intent: int64(call.Proof.Seq), Type: call.Message.Type, PID: call.PID, Causation: call.Message.Meta.Causation}
	if do, ok := call.Effect.Run.(*kernel.Invocation); ok {
		end.Name = do.Name
	}
	job := r.job(b)
	data, err := r.inTurn(ctx, b, job, end)
	if left, ok := errors.AsType[kernel.Unfinished](err); ok {
		call.Effect, call.Data, call.Err = nil, nil, left.Fault
		b.charge(call)
		r.kernel.root.Send(b.replyTo, &b.batch)
		return
	}
	outcome := schema.Outcome{Data: data}
	switch {
	case err == nil && !schema.Valid(data):
		r.log.Error("runner returned no JSON", "call", call)
		outcome.Err = fault.Of(errNoJSON)
	case err != nil:
		outcome.Err = r.failure(ctx, call, err)
	case job.Elsewhere != nil:
		outcome.Refs, end.Digest = job.Elsewhere.Refs, job.Elsewhere.Digest
	}
	end.Outcome = schema.AppendOutcome(nil, schema.KindCommand, &outcome)
	step, failed := r.kernel.step(call.AsCause(), call.Syscall.Ended(end))
	if failed != nil { // a bug in the row; the intent gets an outcome at the next start
		r.log.Error("effect has no outcome", "call", call, "error", failed)
		call.Effect, call.Err = nil, failed
		r.kernel.root.Send(b.replyTo, &b.batch)
		return
	}
	step.ends, step.account = b, b.account
	step.calls[0].Holds = call.Holds
	step.calls[0].Proof.LatencyUS = kernel.Microseconds(time.Since(b.begun))
	r.kernel.prepare(&step.calls[0])
	do, ended := call.Effect.Run, r.ends[call.Message.Type] // the step owns b from here on
	r.kernel.send(step)
	if ended != nil {
		ended(do)
	}
}

var errNoJSON = fmt.Errorf("runner returned no JSON")

// inTurn runs the runner in the call's turn.
func (r *runs) inTurn(ctx context.Context, b *frames, job *kernel.Job, end *schema.EffectEnd) ([]byte, error) {
	call := &b.calls[0]
	if b.run != nil {
		end.Ran = true
		return r.guarded(ctx, b.run, call, job)
	}
	do, ok := call.Effect.Run.(*kernel.Invocation)
	if ok && do.Describe {
		return schema.Marshal(do.Tool())
	}
	if ok && do.Path == nil && do.Code == nil { // no turn: its provider may make calls that need one
		data, err := r.guarded(ctx, checked(do, r.kernel.providers.Run), call, job)
		end.Ran = begun(err)
		return data, err
	}
	runner := r.runners[call.Message.Type]
	if runner == nil {
		return nil, fault.KernelUnsupported.New("this kernel does not run %s", call.Message.Type)
	}
	if r.begins[call.Message.Type] != nil { // no turn: it was already sent
		data, err := r.guarded(ctx, runner, call, job)
		end.Ran = begun(err)
		return data, err
	}
	limit := r.turns
	if ok {
		runner = checked(do, runner)
		if do.Code != nil {
			limit = r.codes
		}
	}
	back, err := limit.Take(ctx, call.PID)
	if err != nil {
		return nil, err
	}
	defer back()
	data, err := r.guarded(ctx, runner, call, job)
	end.Ran = begun(err)
	return data, err
}

// checked validates call and answer of a registered syscall by its schemas. It runs here because it is slow.
func checked(do *kernel.Invocation, run kernel.Runner) kernel.Runner {
	return func(ctx context.Context, job *kernel.Job) ([]byte, error) {
		if wrong := do.CheckInput(do.Data); wrong != nil {
			return nil, wrong
		}
		data, err := run(ctx, job)
		if why, ok := errors.AsType[*fault.Fault](err); ok && why.ID.Domain() == "provider" {
			return nil, why.With("syscall", do.Name)
		}
		if err != nil || job.Elsewhere != nil || !schema.Valid(data) { // a value in a blob was validated before it was stored
			return data, err
		}
		if wrong := do.CheckOutput(data); wrong != nil {
			return nil, wrong
		}
		return data, nil
	}
}

// job returns the input of the runner of b.
func (r *runs) job(b *frames) *kernel.Job {
	call := &b.calls[0]
	return &kernel.Job{
		Do: call.Effect.Run, PID: call.PID, Origin: call.Origin, Token: call.Token,
		Moment: call.Moment, ID: call.Message.Meta.ID, Seq: call.Proof.Seq, Cause: call.Message.Meta.Causation, Conn: call.Caller.Conn, Via: call.Caller.Via,
		Progress: b.progress(r.kernel),
	}
}

// guarded converts a panic of the runner to a failure of its call.
func (r *runs) guarded(ctx context.Context, runner kernel.Runner, call *kernel.Call, job *kernel.Job) (data []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("effect panicked", "call", call, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("run %s: panic: %v", call.Message.Type, p)
		}
	}()
	return runner(ctx, job)
}

// failure returns the fault that the caller gets for an error.
func (r *runs) failure(ctx context.Context, call *kernel.Call, err error) *fault.Fault {
	if ctx.Err() != nil {
		return fault.CallCancelled.New("%s was stopped: %s", call.Message.Type, fault.Of(context.Cause(ctx)).Message)
	}
	shown := fault.Of(err)
	if shown.Kind == fault.Internal {
		r.log.Error("effect failed", "call", call, "error", err)
	}
	return shown
}

// ended answers the call of an effect with the outcome that the domain recorded.
func (r *runs) ended(s *step) {
	intent, call := s.ends, &s.calls[0]
	first := &intent.calls[0]
	first.Data, first.Refs, first.Err, first.Effect = call.Data, call.Refs, call.Err, nil
	first.Proof = call.Proof
	intent.charge(first)
	if first.Proof.Seq != 0 {
		first.Proof.PID = first.PID
	}
	r.kernel.root.Send(intent.replyTo, &intent.batch)
}

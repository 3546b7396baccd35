package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Most effects that are done at a time. More wait for their turn, each on a connection of its own, which waits for its
// answer.
const (
	maxEffectsEach = 16 // for one process, so that none takes all
	maxEffects     = 64
)

// errEnding is why effects are cancelled when the kernel ends.
var errEnding = fault.KernelStopping.New("the kernel is shutting down")

// errHungUp is why one is cancelled when its connection has closed.
var errHungUp = fault.CallCancelled.New("its connection is closed")

// runs are the effects that are done outside the kernel. Each has a goroutine, which ends in a command to the domain of its
// outcome; the audit log answers the call once that is on disk.
type runs struct {
	kernel  *Kernel
	runners map[string]kernel.Runner
	log     *slog.Logger
	turns   turns
	codes   turns // of calls whose handlers are code
	ending  context.Context
	cancel  context.CancelCauseFunc
	alive   sync.WaitGroup
}

func newRuns(k *Kernel, runners map[string]kernel.Runner) *runs {
	r := &runs{kernel: k, runners: runners, log: k.log.With("component", "effects"), turns: newTurns(maxEffectsEach, maxEffects)}
	r.codes = newTurns(max(1, k.code.AtOnce/2), max(1, k.code.AtOnce))
	r.ending, r.cancel = context.WithCancelCause(context.Background())
	return r
}

// end cancels all effects, those that are yet to be begun too.
func (r *runs) end() { r.cancel(errEnding) }

// begin does the effect of b, whose intent is on disk, and owns b from here on.
func (r *runs) begin(b *frames) {
	r.alive.Add(1)
	r.kernel.loop.background(func() {
		defer r.alive.Done()
		r.run(b)
	})
}

// run does one effect and has its outcome journaled.
func (r *runs) run(b *frames) {
	call := &b.calls[0]
	ctx, cancel := context.WithCancelCause(b.ctx)
	defer cancel(nil)
	if r.ending.Err() != nil {
		cancel(errEnding)
	}
	defer context.AfterFunc(r.ending, func() { cancel(errEnding) })()

	end := &schema.EffectEnd{Intent: int64(call.Proof.Seq), Type: call.Message.Type, PID: call.PID, Causation: call.Message.Meta.Causation}
	if do, ok := call.Effect.Run.(*kernel.Invocation); ok {
		end.Name = do.Name
	}
	job := r.job(b)
	data, err := r.inTurn(ctx, b, job, end)
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
	step, failed := r.kernel.step(call, call.Syscall.Ended(end))
	if failed != nil { // such a row is a bug, and the intent stays without an outcome until the next start
		r.log.Error("effect has no outcome", "call", call, "error", failed)
		call.Effect, call.Err = nil, failed
		r.kernel.root.Send(b.replyTo, &b.batch)
		return
	}
	step.ends, step.account = b, b.account
	step.calls[0].Proof.LatencyUS = microseconds(time.Since(b.begun))
	r.kernel.prepare(&step.calls[0])
	r.kernel.send(step)
}

var errNoJSON = fmt.Errorf("runner returned no JSON")

// inTurn runs the runner when it is the call's turn.
func (r *runs) inTurn(ctx context.Context, b *frames, job *kernel.Job, end *schema.EffectEnd) ([]byte, error) {
	call := &b.calls[0]
	if b.run != nil {
		end.Ran = true
		return r.guarded(ctx, b.run.do, call, job)
	}
	do, ok := call.Effect.Run.(*kernel.Invocation)
	if ok && do.Describe {
		return schema.Marshal(do.Tool())
	}
	if ok && do.Path == nil && do.Code == nil { // it takes no turn: its provider may make calls for it that do
		data, err := r.guarded(ctx, checked(do, r.kernel.providers.Run), call, job)
		end.Ran = begun(err)
		return data, err
	}
	runner := r.runners[call.Message.Type]
	if runner == nil {
		return nil, fault.KernelUnsupported.New("this kernel does not run %s", call.Message.Type)
	}
	turns := &r.turns
	if ok {
		runner = checked(do, runner)
		if do.Code != nil {
			turns = &r.codes
		}
	}
	back, err := turns.take(ctx, call.PID)
	if err != nil {
		return nil, err
	}
	defer back()
	data, err := r.guarded(ctx, runner, call, job)
	end.Ran = begun(err)
	return data, err
}

// begun reports whether a runner that returned err has begun.
func begun(err error) bool {
	return !errors.Is(err, fault.ProviderAway) && !errors.Is(err, fault.ProviderItself) && !errors.Is(err, fault.WireInvalidInput)
}

// checked is the runner of a registered syscall, with call and answer held against its schemas. That takes long, so it is done here.
func checked(do *kernel.Invocation, run kernel.Runner) kernel.Runner {
	return func(ctx context.Context, job *kernel.Job) ([]byte, error) {
		if wrong := do.CheckInput(do.Data); wrong != nil {
			return nil, wrong
		}
		data, err := run(ctx, job)
		if why, ok := errors.AsType[*fault.Fault](err); ok && why.ID.Domain() == "provider" {
			return nil, why.With("syscall", do.Name)
		}
		if err != nil || job.Elsewhere != nil || !schema.Valid(data) { // what is elsewhere was checked before it went there
			return data, err
		}
		if wrong := do.CheckOutput(data); wrong != nil {
			return nil, wrong
		}
		return data, nil
	}
}

// job is what the runner of b is given.
func (r *runs) job(b *frames) *kernel.Job {
	call := &b.calls[0]
	job := &kernel.Job{
		Do: call.Effect.Run, Type: call.Message.Type, PID: call.PID, Origin: call.Origin, Token: call.Token,
		Tick: call.Tick, Time: call.Time, ID: call.Message.Meta.ID, Cause: call.Message.Meta.Causation, Conn: call.Caller.Conn, Via: call.Caller.Via,
	}
	if call.Message.Meta.Progress {
		to, dialect := b.replyTo, call.Message.Dialect
		job.Progress = func(e kernel.Event) { r.kernel.root.Send(to, &progressed{dialect, e}) }
	}
	return job
}

// guarded keeps a panic of the runner the failure of its caller alone.
func (r *runs) guarded(ctx context.Context, runner kernel.Runner, call *kernel.Call, job *kernel.Job) (data []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("effect panicked", "call", call, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("run %s: panic: %v", call.Message.Type, p)
		}
	}()
	return runner(ctx, job)
}

// failure is what the caller is told of an error.
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

// ended answers the call whose outcome s is: with what the domain made of it.
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

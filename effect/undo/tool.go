package undo

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// undoing is the data of the syscall that undoes a tool's call.
type undoing struct {
	Call    *schema.CallInput `json:"call"`
	Outcome schema.Value      `json:"outcome"`
}

// tool undoes a call of a user-space syscall by the one that its manifest names.
func (a *attempt) tool(ctx context.Context, in *schema.CallInput) (schema.UndoOutput, error) {
	if in.Describe != nil && *in.Describe {
		return a.out, fault.UndoNothing.New("entry %d changed nothing: it only asked what %s does", a.seq, in.Syscall)
	}
	end, err := a.end(ctx, a.seq)
	if err != nil {
		return a.out, err
	}
	called, outcome, err := toolEnd(end)
	if err != nil {
		return a.out, err
	}
	if outcome.Err != nil {
		return a.out, impossible("entry %d is a call of %s that failed: whether it did anything, only a look can tell: %s", a.seq, called.URI, outcome.Err.Message)
	}
	path, err := a.namedUndo(ctx, called.URI)
	if err != nil {
		return a.out, err
	}
	a.out.Tool = path
	if err := a.calledBefore(ctx, path); err != nil || a.do.DryRun {
		return a.out, err
	}
	arg, err := schema.Marshal(&undoing{Call: in, Outcome: outcome.Data})
	if err != nil {
		return a.out, err
	}
	a.out.Answer, err = a.call(ctx, &schema.CallInput{Syscall: path, Args: []schema.Value{arg}}, a.entry.Message.Meta.ID)
	return a.out, err
}

// end finds the end of an effect.
func (a *attempt) end(ctx context.Context, intent uint64) (*schema.EffectEnd, error) {
	var found *schema.EffectEnd
	err := a.History.Scan(ctx, intent+1, a.head, schema.Process, func(call *kernel.Call) error {
		if end, ok := call.Input.(*schema.EffectEnd); ok && uint64(end.Intent) == intent {
			kept := *end
			kept.Outcome = append(schema.Value(nil), end.Outcome...)
			found = &kept
			return errFound
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errFound):
		return nil, err
	case found == nil:
		return nil, fault.UndoNothing.New("entry %d is still running: wait for its end", intent)
	case found.Unknown:
		return nil, impossible("the kernel ended during entry %d: whether it did anything, only a look can tell", intent)
	}
	return found, nil
}

// toolEnd decodes the end of a tool's call: the call and its outcome.
func toolEnd(end *schema.EffectEnd) (*schema.ToolCall, *schema.Outcome, error) {
	data, failure := end.Result()
	if failure != nil {
		return &schema.ToolCall{URI: end.Type}, &schema.Outcome{Err: failure}, nil
	}
	in, err := schema.TypeOf[schema.ToolCall]().Decode(data)
	if err != nil {
		return nil, nil, fmt.Errorf("read the outcome of a tool: %w", err)
	}
	called := in.(*schema.ToolCall)
	outcome, failed := schema.DecodeOutcome(called.Outcome)
	if failed != nil {
		return nil, nil, fmt.Errorf("read the outcome of a tool: %w", failed)
	}
	return called, &outcome, nil
}

// namedUndo asks the tool which syscall undoes it.
func (a *attempt) namedUndo(ctx context.Context, uri string) (string, error) {
	describe := true
	data, err := a.call(ctx, &schema.CallInput{Syscall: uri, Describe: &describe}, a.job.ID)
	if err != nil {
		return "", fmt.Errorf("ask what undoes %s: %w", uri, err)
	}
	in, failed := schema.TypeOf[schema.ToolDescription]().Decode(data)
	if failed != nil {
		return "", fmt.Errorf("read what undoes %s: %w", uri, failed)
	}
	if path := in.(*schema.ToolDescription).Undo; path != "" {
		return path, nil
	}
	return "", impossible("entry %d is a call of %s, whose manifest names no undo", a.seq, uri)
}

// calledBefore returns a fault if the call was undone before.
func (a *attempt) calledBefore(ctx context.Context, path string) error {
	id, begun := a.entry.Message.Meta.ID, make(map[int64]bool)
	return a.History.Scan(ctx, a.seq+1, a.head, schema.Process, func(call *kernel.Call) error {
		switch in := call.Input.(type) {
		case *schema.CallInput:
			if call.Err == nil && call.PID == kernel.Operator && call.Message.Meta.Causation == id && in.Syscall == path {
				begun[int64(call.Proof.Seq)] = true
			}
		case *schema.EffectEnd:
			if !begun[in.Intent] {
				return nil
			}
			if _, outcome, err := toolEnd(in); err != nil || outcome.Err != nil {
				return err
			}
			return fault.UndoAlready.New("entry %d is already undone by seq %d", a.seq, in.Intent).
				WithFix("what that did, the kernel cannot undo").With("by", strconv.FormatInt(in.Intent, 10))
		}
		return nil
	})
}

// call makes a call of a user-space syscall as the operator, in the origin of the undone entry.
func (a *attempt) call(ctx context.Context, in *schema.CallInput, cause string) (schema.Value, error) {
	data, err := schema.Marshal(in)
	if err != nil {
		return nil, err
	}
	a.calls++ // each call has a connection of its own: that of the last call may not have ended yet
	caller := kernel.Caller{PID: kernel.Operator, Conn: "undo-" + a.job.ID + "." + strconv.Itoa(a.calls), Origin: a.entry.Origin}
	answer, err := a.Kernel.Do(ctx, kernel.Own{Caller: caller, Message: schema.Message{
		Kind: schema.KindCommand, Type: schema.CallType, Data: data,
		Meta: schema.Metadata{Causation: cause, Correlation: a.entry.Message.Meta.Correlation},
	}})
	return answer.Data, err
}

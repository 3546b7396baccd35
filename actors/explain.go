package actors

import (
	"context"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// asked is the call that a Capability.Check with data asks about: what a frame of that syscall and data would become.
func (k *Kernel) asked(call *kernel.Call, in *schema.CheckInput) *kernel.Call {
	about := &kernel.Call{Caller: call.Caller, Probe: &kernel.Probe{Operator: call.Caller.PID == kernel.Operator}}
	about.Caller.PID = in.Of(call.Caller.PID)
	about.Message = schema.Message{Dialect: call.Message.Dialect, Kind: schema.KindCommand, Type: in.Syscall, Data: in.Data, Meta: call.Message.Meta}
	if row, ok := kernel.Named(in.Syscall); ok {
		about.Message.Type, about.Message.Kind = row.Type, row.Kind
	} else if r := k.registered(about, nil, in.Syscall); r != nil && r.Kind == schema.KindQuery.String() {
		about.Message.Kind = schema.KindQuery
	}
	if in.ResourceID != nil || in.Amount != nil {
		about.Err = kernel.Invalid("data", "says it all: leave out resource_id and amount")
		return about
	}
	if k.read(about); k.brought(about) && about.Caller.PID != call.Caller.PID && !about.Probe.Operator {
		about.Err = kernel.Invalid("data", "must not refer to files of another process")
	}
	return about
}

// subject is the call whose data a frame has: the one that it asks about, or itself.
func subject(call *kernel.Call) *kernel.Call {
	if call.Asks != nil {
		return call.Asks
	}
	return call
}

// explain answers a Capability.Check about a call of this domain, with what the stages of the gate say and what the handler would
// decide. Of another process's call an agent is told only what the gate says: what that process sees is not the agent's business.
func (d *domain) explain(call *kernel.Call) (kernel.Result, error) {
	about := call.Asks
	if err := kernel.MayAskAbout(d.kernel.processes, call.PID, about.Caller.PID); err != nil {
		return kernel.Result{}, err
	}
	out := &schema.CheckOutput{Type: about.Message.Called()}
	if about.Err != nil {
		return explained(out, "data", "", kernel.Deny(about.Err))
	}
	about.Time = call.Time
	var v kernel.Verdict
	out.Stages, v = d.kernel.gate.Explain(about)
	out.PID, out.Tick = &about.PID, &about.Tick
	if !v.Allows() || about.PID != call.PID && call.PID != kernel.Operator && d.name != schema.Resource {
		return explained(out, "", "", v)
	}
	about.Probe.Why("") // what the last stage said
	result, err := d.decide(about, true)
	if err != nil {
		return explained(out, "handler", "", kernel.Deny(fault.Of(err)))
	}
	if do := invocation(&result); do != nil && !do.Describe {
		return kernel.Result{Read: func(context.Context) (kernel.Result, error) {
			return explained(out, "handler", "", kernel.Deny(do.CheckInput(do.Data)))
		}}, nil
	}
	return explained(out, "handler", about.Probe.Said(), kernel.Verdict{})
}

// invocation is the call of a registered syscall that a result begins, nil where it is none.
func invocation(result *kernel.Result) *kernel.Invocation {
	if result.Effect == nil {
		return nil
	}
	do, _ := result.Effect.Run.(*kernel.Invocation)
	return do
}

// explained is the answer with the verdict of a last stage, and why it allows the call; "": it is there already.
func explained(out *schema.CheckOutput, last, why string, v kernel.Verdict) (kernel.Result, error) {
	if last != "" {
		out.Stages = append(out.Stages, kernel.Explained(last, why, v))
	}
	out.Allowed = v.Allows()
	if v.Pending != nil {
		v.Fault = fault.ApprovalPending.New("%s would wait for somebody's approval", out.Type)
	}
	if f := v.Fault; f != nil {
		out.Reason, out.Error, out.Code = f.Text(), string(f.ID), int64(f.Code())
	}
	data, err := schema.Marshal(out)
	return kernel.Result{Data: data}, err
}

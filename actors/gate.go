package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// pended is a batch whose first call waits at the gate, and the later ones of its connection, since frames take effect in
// order.
type pended struct {
	batch  *batch
	behind []*batch
}

// answeredQuestion makes the calls that wait for this question pass the gate again.
type answeredQuestion struct{ id string }

// exitedProcesses makes the waiting calls of ended processes pass the gate again.
type exitedProcesses struct{ pids []int64 }

// Answered makes the calls that wait for this question pass the gate again. It may be called until Close.
func (k *Kernel) Answered(question string) {
	for name := range k.states {
		k.root.Send(k.domains[name], answeredQuestion{question})
	}
}

// Ask journals a question about a call as an entry of its process, as Note does. It returns false if that fails.
func (k *Kernel) Ask(call *kernel.Call, question schema.Request) bool {
	if k.refusing.Load() {
		return false
	}
	s, err := k.step(call.AsCause(), question)
	if err != nil {
		k.log.Error("question not journaled", "type", question.Row.Type, "error", err)
		return false
	}
	s.calls[0].PID = call.PID
	k.send(s)
	return true
}

// Repeats reports whether a call repeats an idempotency key, and so gets the first outcome again.
func (k *Kernel) Repeats(call *kernel.Call) bool { return k.keys.Repeats(call) }

// budget is the Budget stage: a repeated call does nothing and costs nothing.
func (k *Kernel) budget(call *kernel.Call) kernel.Verdict {
	if k.Repeats(call) {
		return kernel.Verdict{}
	}
	return k.budgets.Stage(call)
}

// use uses up the approval of the i-th call of b, and then decides the call. Nothing else has changed.
func (d *domain) use(ctx actor.Context, b *batch, i int, begun time.Time) {
	if i > 0 {
		b.sender.split(ctx, d, i)
		i = 0
	}
	use := kernel.Result{Steps: []schema.Request{*b.calls[i].Approval.Use}}
	d.busy = &saga{batch: b, at: i, result: use, begun: begun, epoch: d.epoch, uses: true}
	d.step(ctx, nil)
}

// pend keeps b, whose i-th call waits at the gate, and all later frames of its connection, until the question is answered.
func (d *domain) pend(ctx actor.Context, b *batch, i int, q *kernel.Pending) {
	if b.question != q.ID {
		b.question, b.until = q.ID, time.Time{}
	}
	b.sender.pend(ctx, d, i)
	d.park(ctx, b, q.Wait)
}

// passAgain decides the waiting calls of these processes again.
func (d *domain) passAgain(pids []int64) {
	for _, pid := range pids {
		if d.parked[pid] == nil {
			continue
		}
		for _, p := range d.take(pid, func(p *parked) bool { return p.batch.question != "" }) {
			d.queue = append(d.queue, p.batch)
		}
	}
}

// answered decides the calls that wait for a question again.
func (d *domain) answered(question string) {
	for pid := range d.parked {
		for _, p := range d.take(pid, func(p *parked) bool { return p.batch.question == question }) {
			if d.kernel.refers.MayChange(&p.batch.calls[0]) {
				d.bindAgain(p.batch)
				continue
			}
			d.queue = append(d.queue, p.batch)
		}
	}
}

// bound is a batch that waited for a question, and whose first call binds the files as they are now.
type bound struct{ batch *batch }

// bindAgain reads the files that a command names again, since they may have changed while the question was open. The batch belongs
// to the goroutine meanwhile.
func (d *domain) bindAgain(b *batch) {
	self, root := d.kernel.domains[d.name], d.kernel.root
	d.kernel.background(func() {
		d.kernel.refers.Again(&b.calls[0])
		root.Send(self, bound{b})
	})
}

// asked returns the call that a Capability.Check with data asks about, as a frame with that syscall and data would be
// decoded.
func (k *Kernel) asked(call *kernel.Call, in *schema.CheckInput) *kernel.Call {
	asked := kernel.NewCall(kernel.Request{
		Caller:  call.Caller,
		Message: schema.Message{Dialect: call.Message.Dialect, Kind: schema.KindCommand, Type: in.Syscall, Data: in.Data, Meta: call.Message.Meta},
		Probe:   &kernel.Probe{Operator: call.Caller.PID == kernel.Operator},
	}, call.Moment)
	about := &asked
	about.Caller.PID = in.Of(call.Caller.PID)
	if row, ok := kernel.Named(in.Syscall); ok {
		about.Message.Type, about.Message.Kind = row.Type, row.Kind
	} else if r := k.registered(about, nil, in.Syscall); r != nil && r.Kind == schema.KindQuery.String() {
		about.Message.Kind = schema.KindQuery
	}
	if in.ResourceID != nil || in.Amount != nil {
		about.Err = kernel.Invalid("data", "says it all: leave out resource_id and amount")
		return about
	}
	if k.read(about); k.refers.Needs(about) && about.Caller.PID != call.Caller.PID && !about.Probe.Operator {
		about.Err = kernel.Invalid("data", "must not refer to files of another process")
	}
	return about
}

// May returns nil if the gate would let the caller of a call make another one now, without an approval. Only the actor that
// decides the call may call it.
func (k *Kernel) May(call *kernel.Call, row *schema.Syscall, data []byte) *fault.Fault {
	about := k.asked(call, &schema.CheckInput{Syscall: row.Type, Data: data, PID: &call.PID})
	if about.Err != nil {
		return about.Err
	}
	_, v := k.gate.Explain(about)
	if v.Pending != nil {
		return fault.ApprovalPending.New("%s would wait for an approval", row.Type)
	}
	return v.Fault
}

// subject returns the call that a frame asks about, otherwise the frame's own.
func subject(call *kernel.Call) *kernel.Call {
	if call.Asks != nil {
		return call.Asks
	}
	return call
}

// explain answers a Capability.Check about a call of this domain with the verdicts of the gate's stages and the decision of
// the handler. For another process's call an agent sees only the gate's part, since it must not learn what that process
// sees.
func (d *domain) explain(call *kernel.Call) (kernel.Result, error) {
	about := call.Asks
	if err := kernel.MayAskAbout(d.kernel.processes, call.PID, about.Caller.PID); err != nil {
		return kernel.Result{}, err
	}
	out := &schema.CheckOutput{Type: about.Message.Called()}
	if about.Err != nil {
		return explained(out, "data", "", kernel.Deny(about.Err))
	}
	about.Moment = call.Moment
	var v kernel.Verdict
	out.Stages, v = d.kernel.gate.Explain(about)
	out.PID, out.Tick = &about.PID, &about.Tick
	if !v.Allows() || about.PID != call.PID && call.PID != kernel.Operator && d.name != schema.Resource {
		return explained(out, "", "", v)
	}
	about.Probe.Why("") // reset to the last stage
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

// invocation returns the call of a registered syscall that a result begins, or nil.
func invocation(result *kernel.Result) *kernel.Invocation {
	if result.Effect == nil {
		return nil
	}
	do, _ := result.Effect.Run.(*kernel.Invocation)
	return do
}

// explained returns the answer with the verdict of the last stage, and the reason if it allows the call; with "", the
// answer already has the reason.
func explained(out *schema.CheckOutput, last, why string, v kernel.Verdict) (kernel.Result, error) {
	if last != "" {
		out.Stages = append(out.Stages, kernel.Explained(last, why, v))
	}
	out.Allowed = v.Allows()
	if v.Pending != nil {
		v.Fault = fault.ApprovalPending.New("%s would wait for an approval", out.Type)
	}
	if f := v.Fault; f != nil {
		out.Reason, out.Error, out.Code = f.Text(), string(f.ID), int64(f.Code())
	}
	data, err := schema.Marshal(out)
	return kernel.Result{Data: data}, err
}

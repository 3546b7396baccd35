package actors

import (
	"context"

	questions "github.com/promptware-os/pwos/kernel/audit"

	"github.com/promptware-os/pwos/effect/provide"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// programEnd describes the end of a run of a program.
type programEnd = schema.ProcessEndInput

// noteEnd is the command that journals the end of a run.
func noteEnd(in *programEnd) schema.Request { return schema.ProcessNoteEnd.With(in) }

// noteStart is the command that journals the start of a program's process.
func noteStart(pid int64, p *host.Process, again bool) schema.Request {
	return schema.ProcessNoteStart.With(&schema.ProcessStartInput{PID: pid, OSPID: int64(p.OSPID()), Sandbox: p.Sandbox(), Again: again, Upstreams: p.Upstreams()})
}

// noteThrottled journals how many calls of a process were refused because it exceeds a bound.
func (k *Kernel) noteThrottled(pid, count int64) {
	k.noteOf(pid, schema.KernelThrottled.With(&schema.ThrottledInput{PID: pid, Count: count}))
}

// runsAlone reports whether a call runs alone on its connection: its row says so, or its input makes it slow.
func runsAlone(call *kernel.Call) bool {
	in, ok := call.Input.(interface{ TakesLong() bool })
	return call.Syscall.Alone || ok && in.TakesLong() || call.Asks != nil && call.Asks.Syscall == schema.SyscallInvoke.Row()
}

// way returns the domain that a call is sent to.
func way(call *kernel.Call) schema.Domain {
	switch asked := call.Asks; {
	case call.Err != nil, call.Syscall == schema.SyscallProgress.Row():
		return local
	case asked != nil && asked.Err == nil:
		return asked.Syscall.Domain // the domain whose handler it asks about
	}
	return call.Syscall.Domain
}

// read resolves a call's row and decodes its data. It sets the call's error if that fails.
func (k *Kernel) read(call *kernel.Call) {
	request := call.Message.Request
	if call.Caller.Kernel {
		request = call.Message.OwnRequest
	}
	call.Syscall, call.Input, call.Err = request()
	switch in := call.Input.(type) {
	case *schema.SpawnInput:
		if call.Err == nil && k.sealVariables(call, in) {
			call.Message.Data = marshal(call, in)
		}
	case *schema.JobStartInput:
		if call.Err == nil && in.Name == schema.SyscallSpawn.Type {
			k.sealJob(call, in)
		}
	}
	if in, ok := call.Input.(*schema.CheckInput); ok && call.Err == nil && call.Probe == nil && in.Data != nil {
		call.Asks = k.asked(call, in)
	}
	switch in, ok := call.Input.(*schema.CallInput); {
	case call.Err != nil && call.Err.ID == fault.WireUnknownSyscall && k.registered(call, nil, call.Message.Type) != nil:
		call.Syscall, call.Input, call.Err = call.Message.Registered()
	case call.Err == nil && ok:
		if path, ok := schema.ToolPath(in.Syscall); ok {
			if r := k.registered(call, in.PID, path); r != nil {
				call.Syscall, call.Input, call.Err = call.Message.Provided(in, r)
			}
		}
	}
}

// sealVariables replaces the variables and logins in the data of a Syscall.Spawn by what the journal has of them, whether the call
// succeeds or fails. It reports whether there are any.
func (k *Kernel) sealVariables(call *kernel.Call, in *schema.SpawnInput) bool {
	if k.seal == nil || len(in.Env)+len(in.Logins) == 0 {
		return false
	}
	for _, values := range []map[string]string{in.Env, in.Logins} {
		if err := k.seal(values); err != nil && call.Err == nil {
			call.Err = fault.Of(err)
		}
	}
	return true
}

// sealJob does so in the data of a job that spawns. Data that is not valid is refused, and then the journal has none of it.
func (k *Kernel) sealJob(call *kernel.Call, in *schema.JobStartInput) {
	spawn, err := schema.SyscallSpawn.Input().Decode(in.Payload)
	if err != nil || !k.sealVariables(call, spawn.(*schema.SpawnInput)) {
		return
	}
	in.Payload = marshal(call, spawn)
	call.Message.Data = marshal(call, in)
}

// marshal encodes the data of a call. It sets the call's error if that fails.
func marshal(call *kernel.Call, in any) schema.Value {
	data, err := schema.Marshal(in)
	if err != nil && call.Err == nil {
		call.Err = fault.Of(err)
	}
	return data
}

// registered returns the registration of a name in the origin of the caller, or of the process that the operator acts as;
// nil if there is none.
func (k *Kernel) registered(call *kernel.Call, as *int64, name string) *schema.Registration {
	if k.registry == nil {
		return nil
	}
	caller := call.Caller
	if as != nil && caller.PID == kernel.Operator {
		caller.PID = *as
	}
	origin := k.originOf(&caller)
	if chosen := call.Message.Meta.Origin; chosen != "" && caller.PID == kernel.Operator {
		if normal, err := k.readOrigin(chosen); err == nil {
			origin = normal
		}
	}
	return k.registry.Registered(origin, name)
}

// readReferences reads what a call refers to, on a goroutine.
func (c *connection) readReferences(call *kernel.Call) {
	if provide.AnswersByRef(call) {
		call.Refused = c.kernel.providers.CompleteLong(c.kernel.runs.ending, c.kernel.blobs, c.caller.PID, c.kernel.originOf(&c.caller), c, call.Input.(*schema.CompleteInput))
		call.Parked = call.Refused == nil
		return
	}
	c.kernel.readReferences(call)
}

// readReferences reads what a call refers to.
func (k *Kernel) readReferences(call *kernel.Call) { k.refers.Read(subject(call)) }

// codeOf returns the code that a call registers, or nil.
func codeOf(call *kernel.Call) *string {
	if in, ok := call.Input.(*schema.RegisterInput); ok && call.Err == nil {
		return in.Code
	}
	return nil
}

// checkCode checks, on a goroutine, the code that a call registers. It skips code of a caller that may not register it.
func (k *Kernel) checkCode(call *kernel.Call) {
	call = subject(call)
	source, pid := codeOf(call), call.Caller.PID
	if source == nil {
		return
	}
	if call.Refused = kernel.Authorize(k.processes, pid, k.tokens.Token(pid), call.Syscall, k.clock.now()); call.Refused != nil {
		return
	}
	if k.code.Check == nil {
		call.Refused = fault.KernelUnsupported.New("this kernel runs no code")
		return
	}
	back, err := k.runs.codes.Take(k.runs.ending, pid)
	if err == nil {
		defer back()
		err = k.code.Check(k.runs.ending, *source)
	}
	if err != nil {
		call.Refused = fault.Of(err)
	}
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

// provide handles a provider's Syscall.Complete and Syscall.Progress. They do not queue after other frames of its
// connection, which may wait for the caller. A Syscall.Complete is then journaled like any call; a Syscall.Progress is
// answered here and not journaled. An answer by reference is left to readReferences. Any goroutine may call it.
func (c *connection) provide(call *kernel.Call) {
	if call.Err != nil {
		return
	}
	switch in := call.Input.(type) {
	case *schema.CompleteInput:
		if provide.AnswersByRef(call) {
			return
		}
		call.Refused = c.kernel.providers.Complete(c, in)
		call.Parked = call.Refused == nil // a bound must not refuse what has already happened
	case *schema.ProgressInput:
		if call.Err = c.kernel.providers.Progress(c, in); call.Err == nil {
			call.Data = schema.SuccessOutput{Success: true}.AppendJSON(nil)
		}
	}
}

// changed updates the connection after an answered call.
func (c *connection) changed(call *kernel.Call) {
	switch {
	case call.Err != nil || call.Syscall == nil:
	case call.Syscall == schema.ProcessAttach.Row():
		c.attached(call)
	case provide.Registers(call):
		c.provides = true
	}
}

// isAttach reports whether a call changes the process of its connection.
func isAttach(call *kernel.Call) bool {
	return call.Err == nil && call.Syscall == schema.ProcessAttach.Row()
}

// mayAttach returns why the connection cannot change its process, or nil if it can. All earlier frames are answered.
func (c *connection) mayAttach() *fault.Fault {
	if len(c.following) > 0 || len(c.endings) > 0 || c.provides {
		return fault.ConnectionFollows.New("this connection has subscriptions, unacknowledged mail, or syscalls that it provides, and stays who it is")
	}
	return nil
}

// attached changes the connection's process to the one that an answered attach names. Credits in flight then count for that
// process.
func (c *connection) attached(call *kernel.Call) {
	out, err := schema.ProcessAttach.Decode(call.Data)
	if err != nil {
		panic("attach: the kernel's own reply: " + err.Error())
	}
	c.caller.PID, c.caller.Origin = out.PID, ""
	if via := call.Input.(*schema.AttachInput).Via; via != nil {
		c.caller.Via = *via
	}
	share := c.kernel.accounts.open(out.PID)
	share.add(c.credits.bytes)
	c.credits.account = share
}

var _ questions.Journal = view{}

// Metrics and the methods below implement audit.Journal.
func (v view) Metrics(ctx context.Context, call *kernel.Call) (*schema.AuditMetricsOutput, error) {
	if _, err := v.Look(ctx); err != nil { // so that everything appended is counted
		return nil, err
	}
	out := v.kernel.metrics.ShownTo(call.PID, call.Origin)
	if refusal := v.kernel.refusal.Load(); refusal != nil {
		out.Refusing = *refusal
	}
	if v.kernel.warnings != nil && call.PID == kernel.Operator {
		out.Warnings = v.kernel.warnings()
	}
	if v.kernel.away.Load() && call.PID == kernel.Operator {
		out.Warnings = append(out.Warnings, "no majority of the bus acknowledges entries: commands are refused, and this was answered from the kernel's own disk")
	}
	return out, nil
}

// view is the journal for the audit domain: what was written, and what only the running kernel knows.
type view struct {
	*record.View
	kernel *Kernel
}

func (v view) Record() (instance string, epochs []schema.Epoch) {
	return v.kernel.instance, v.kernel.epochs
}

func (v view) Notify() { v.kernel.followed.Store(true) }

package daemon

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/promptware-os/pwos/access/keyed"
	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// link implements cluster.Kernel.
type link struct {
	*actors.Kernel
	members   *keyed.Members
	processes *process.Processes
	tokens    kernel.Tokens
	conns     atomic.Uint64
}

// Accept implements cluster.Kernel.
func (l *link) Accept(ctx context.Context, from *cluster.Requester, in *schema.AcceptInput) (*schema.AcceptOutput, error) {
	pid, err := l.members.Process(from.AuthorizedKey)
	if err != nil {
		return nil, err
	}
	data, err := l.DoFor(ctx, l.caller(from, pid), schema.IPCAccept.With(in), in.Causation, in.Correlation)
	if err != nil {
		return nil, err
	}
	out, invalid := schema.IPCAccept.Output().Decode(data)
	if invalid != nil {
		return nil, invalid
	}
	return out.(*schema.AcceptOutput), nil
}

// Run implements cluster.Kernel.
func (l *link) Run(ctx context.Context, from *cluster.Requester, instance string, epoch int64, call *schema.Errand) ([]byte, error) {
	if call.Spawn != nil {
		if out, done := l.processes.Served(from.Kernel, instance, epoch, call.Number); done {
			return schema.Marshal(&out)
		}
	}
	pid, err := l.members.Process(from.AuthorizedKey)
	if err != nil {
		return nil, err
	}
	message := schema.Message{Kind: schema.KindCommand, Type: call.Type()}
	message.Meta.Causation, message.Meta.Correlation = call.Causation, call.Correlation
	message.Meta.Errand = process.ErrandName(from.Kernel, instance, epoch, call.Number)
	if call.Terminate != nil {
		message.Data, err = schema.SyscallTerminate.Encode(call.Terminate)
	} else {
		message.Data, err = schema.SyscallSpawn.Encode(l.spawn(pid, call))
	}
	if err != nil {
		return nil, err
	}
	return l.Call(ctx, l.caller(from, pid), message)
}

// spawn returns the data of a spawn for the process of another kernel. Of a default grant, only what that process may do is
// granted.
func (l *link) spawn(pid int64, call *schema.Errand) *schema.SpawnInput {
	in := *call.Spawn
	if in.Capabilities == nil {
		return &in
	}
	grant := *in.Capabilities
	in.Capabilities = &grant
	if call.TicksLeft != nil {
		grant.ExpiresAtTick = new(l.Tick() + *call.TicksLeft)
	}
	if token := l.tokens.Token(pid); call.Default && token != nil {
		most := &schema.GrantInput{AllowedSyscalls: grant.AllowedSyscalls, ResourceQuotas: grant.ResourceQuotas}
		process.Cut(most, token, l.Tick())
		grant.AllowedSyscalls, grant.ResourceQuotas, grant.HTTP = most.AllowedSyscalls, most.ResourceQuotas, nil
	}
	return &in
}

// Ask implements cluster.Kernel.
func (l *link) Ask(ctx context.Context, from *cluster.Requester, typ string, data []byte) ([]byte, uint64, error) {
	caller := l.caller(from, kernel.Operator)
	if caller.Role = from.Role; caller.Role == "" {
		pid, err := l.members.Process(from.AuthorizedKey)
		if err != nil {
			return nil, 0, err
		}
		caller.PID = pid
	}
	return l.CallProved(ctx, caller, schema.Message{Kind: schema.KindQuery, Type: typ, Data: data})
}

// caller returns a requester as the caller of a call as a process. Its key is the one that signed: that of a standby, if a
// standby leads the kernel.
func (l *link) caller(from *cluster.Requester, pid int64) kernel.Caller {
	return kernel.Caller{
		PID: pid, Via: "cluster", Key: from.Signer.Fingerprint(),
		Conn: "k-" + from.Kernel + "-" + strconv.FormatUint(l.conns.Add(1), 10),
	}
}

// serveCluster starts to carry messages and calls between kernels, first those that the previous run left.
func (d *Daemon) serveCluster(members *keyed.Members, left cluster.Left) error {
	if d.cluster == nil || d.once {
		return nil
	}
	l := &link{Kernel: d.kernel, members: members, processes: d.state.Processes.Processes(), tokens: d.state.Tokens}
	return d.cluster.Serve(l, d.state.Booted.Instance, d.state.MailEpoch(), left)
}

// begins returns the functions that send messages and calls to other kernels, in their order.
func (d *Daemon) begins() map[string]func(any) {
	call := func(do any) { d.cluster.Link().Begin(&do.(*process.Errand).Errand) }
	return map[string]func(any){
		schema.SyscallSendMsg.Type: func(do any) {
			if f := do.(*ipc.Forward); f.Letter != nil {
				d.cluster.Link().Post(f.Letter)
			}
		},
		schema.SyscallSpawn.Type: call, schema.SyscallTerminate.Type: call,
	}
}

// ends returns the functions that record that the journal has the outcomes of calls for other kernels.
func (d *Daemon) ends() map[string]func(any) {
	settled := func(do any) { d.cluster.Link().Settled(&do.(*process.Errand).Errand) }
	return map[string]func(any){schema.SyscallSpawn.Type: settled, schema.SyscallTerminate.Type: settled}
}

// sendAbroad is the runner of messages to other kernels: it waits for the outcome.
func (d *Daemon) sendAbroad(ctx context.Context, _ *kernel.Job, do *ipc.Forward) (out schema.SendMsgOutput, err error) {
	out = do.Answer
	if do.Letter != nil {
		out.Status, out.Reason, err = d.cluster.Link().Wait(ctx, do.Letter.MsgID)
	}
	return out, err
}

// runAbroad is the runner of calls at other kernels: it waits for the outcome.
func (d *Daemon) runAbroad(ctx context.Context, job *kernel.Job, do *process.Errand) (schema.Value, error) {
	data, err, finished := d.cluster.Link().Outcome(ctx, do.Number, job.Seq)
	if !finished {
		return nil, kernel.Unfinished{Fault: fault.ClusterUnanswered.New("the kernel %s has not answered yet to %s", do.Kernel, do.Type()).With("kernel", do.Kernel)}
	}
	return data, err
}

// leftBehind returns the unfinished work for other kernels of the previous run. The kernel must not own its domains yet.
func leftBehind(s *state.State) cluster.Left {
	return cluster.Left{Letters: s.Mailboxes().Outbox(), Errands: s.Processes.Errands(), Intents: map[int64]uint64{}}
}

// resumes returns a function that finds intents with an outcome of their own: messages in the outbox are queued, and calls
// get their outcome when the other kernel reports it.
func resumes(left cluster.Left) func(*idempotency.Intent) ([]byte, bool) {
	byCall := make(map[string]*schema.Letter, len(left.Letters))
	for _, l := range left.Letters {
		byCall[l.Causation] = l
	}
	return func(i *idempotency.Intent) ([]byte, bool) {
		for _, e := range left.Errands { // both in the order in which they were made, if ids are not unique
			if left.Intents[e.Number] == 0 && e.Type() == i.Type && e.Causation == i.ID && e.PID == i.PID {
				left.Intents[e.Number] = i.Seq
				return nil, true
			}
		}
		l := byCall[i.ID]
		if i.Type != schema.SyscallSendMsg.Type || l == nil || l.SenderPID != i.PID {
			return nil, false
		}
		out := schema.SendMsgOutput{
			ReceiverPID: l.ReceiverPID, Status: schema.MailQueued, MsgID: l.MsgID, ReceiverKernel: l.Kernel,
			Reason: "this kernel was restarted before the kernel " + l.Kernel + " had answered",
		}
		return out.AppendJSON(nil), true
	}
}

package daemon

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/access/keyed"
	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/schema"
)

// link is the kernel as its cluster sees it.
type link struct {
	*actors.Kernel
	members *keyed.Members
	conns   atomic.Uint64
}

// Accept implements cluster.Kernel.
func (l *link) Accept(ctx context.Context, member *access.AuthorizedKey, in *schema.AcceptInput) (*schema.AcceptOutput, error) {
	pid, err := l.members.Process(member)
	if err != nil {
		return nil, err
	}
	caller := kernel.Caller{
		PID: pid, Via: "cluster", Key: member.Key.Fingerprint(),
		Conn: "k-" + member.Kernel + "-" + strconv.FormatUint(l.conns.Add(1), 10),
	}
	data, err := l.DoFor(ctx, caller, schema.IPCAccept.With(in), in.Causation, in.Correlation)
	if err != nil {
		return nil, err
	}
	out, invalid := schema.IPCAccept.Output().Decode(data)
	if invalid != nil {
		return nil, invalid
	}
	return out.(*schema.AcceptOutput), nil
}

// serveCluster begins to carry messages between kernels: first those that the last life left in the outbox.
func (d *Daemon) serveCluster(members *keyed.Members, outbox []*schema.Letter) error {
	if d.cluster == nil || d.once {
		return nil
	}
	return d.cluster.Serve(&link{Kernel: d.kernel, members: members}, d.state.Booted.Instance, d.state.MailEpoch(), outbox)
}

// begins hands messages to other kernels over in their order.
func (d *Daemon) begins() map[string]func(any) {
	return map[string]func(any){schema.SyscallSendMsg.Type: func(do any) {
		if f := do.(*ipc.Forward); f.Letter != nil {
			d.cluster.Link().Post(f.Letter)
		}
	}}
}

// sendAbroad waits for the outcome of a message to another kernel.
func (d *Daemon) sendAbroad(ctx context.Context, _ *kernel.Job, do *ipc.Forward) (out schema.SendMsgOutput, err error) {
	out = do.Answer
	if do.Letter != nil {
		out.Status, out.Reason, err = d.cluster.Link().Wait(ctx, do.Letter.MsgID)
	}
	return out, err
}

// resumes finds the messages to other kernels that go on by themselves: those in the outbox are queued.
func resumes(outbox []*schema.Letter) func(*idempotency.Intent) ([]byte, bool) {
	byCall := make(map[string]*schema.Letter, len(outbox))
	for _, l := range outbox {
		byCall[l.Causation] = l
	}
	return func(i *idempotency.Intent) ([]byte, bool) {
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

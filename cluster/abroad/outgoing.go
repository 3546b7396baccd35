package abroad

import (
	"context"

	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Outgoing runs this kernel's messages and calls at other kernels.
type Outgoing struct {
	Node *cluster.Node // nil: the kernel is in no cluster, and there are none
}

// Begins returns the functions that send messages and calls to other kernels in their order, by the type of their syscall.
func (o Outgoing) Begins() map[string]func(any) {
	call := func(do any) { o.Node.Link().Begin(&do.(*process.Errand).Errand) }
	return map[string]func(any){
		schema.SyscallSendMsg.Type: func(do any) {
			if f := do.(*ipc.Forward); f.Letter != nil {
				o.Node.Link().Post(f.Letter)
			}
		},
		schema.SyscallSpawn.Type: call, schema.SyscallTerminate.Type: call,
	}
}

// Ends returns the functions that record that the journal has the outcome of a call, by the type of its syscall.
func (o Outgoing) Ends() map[string]func(any) {
	settled := func(do any) { o.Node.Link().Settled(&do.(*process.Errand).Errand) }
	return map[string]func(any){schema.SyscallSpawn.Type: settled, schema.SyscallTerminate.Type: settled}
}

// Send waits for the outcome of a message to another kernel.
func (o Outgoing) Send(ctx context.Context, _ *kernel.Job, do *ipc.Forward) (out schema.SendMsgOutput, err error) {
	out = do.Answer
	if do.Letter != nil {
		out.Status, out.Reason, err = o.Node.Link().Wait(ctx, do.Letter.MsgID)
	}
	return out, err
}

// Drop drops a message to another kernel.
func (o Outgoing) Drop(_ context.Context, _ *kernel.Job, do *schema.ClusterDropInput) (schema.ClusterDropOutput, error) {
	return o.Node.Link().Drop(do.MsgID)
}

// Run waits for the outcome of a call at another kernel.
func (o Outgoing) Run(ctx context.Context, job *kernel.Job, do *process.Errand) (schema.Value, error) {
	data, err, finished := o.Node.Link().Outcome(ctx, do.Number, job.Seq)
	if !finished {
		return nil, kernel.Unfinished{Fault: fault.ClusterUnanswered.New("the kernel %s has not answered yet to %s", do.Kernel, do.Type()).With("kernel", do.Kernel)}
	}
	return data, err
}

// Resumes returns a function that finds intents of the previous run with an outcome of their own: messages in the outbox are
// queued, and calls get their outcome when the other kernel answers. It fills left.Intents.
func Resumes(left cluster.Left) func(*idempotency.Intent) ([]byte, bool) {
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

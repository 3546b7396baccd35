// Package abroad connects a running kernel to its cluster (PROTOCOL 13). Kernel makes the calls of other kernels here; the
// runners of Outgoing wait for the outcome of calls at others.
package abroad

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/promptware-os/pwos/access/keyed"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Shell is what the running kernel does for other kernels.
type Shell interface {
	DoFor(ctx context.Context, caller kernel.Caller, request schema.Request, cause, correlation string) ([]byte, error)
	Call(ctx context.Context, caller kernel.Caller, message schema.Message) ([]byte, error)
	CallProved(ctx context.Context, caller kernel.Caller, message schema.Message) (data []byte, seq uint64, err error)
	EndIntent(intent uint64, data []byte, failed *fault.Fault)
	Note(step schema.Request)
	Tick() int64
}

// Kernel is the running kernel as its cluster sees it. It implements cluster.Kernel.
type Kernel struct {
	Shell
	Members   *keyed.Members
	Processes *process.Processes
	Tokens    kernel.Tokens
	conns     atomic.Uint64
}

// Accept implements cluster.Kernel.
func (k *Kernel) Accept(ctx context.Context, from *cluster.Requester, in *schema.AcceptInput) (*schema.AcceptOutput, error) {
	pid, err := k.Members.Process(from.AuthorizedKey)
	if err != nil {
		return nil, err
	}
	data, err := k.DoFor(ctx, k.caller(from, pid), schema.IPCAccept.With(in), in.Causation, in.Correlation)
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
func (k *Kernel) Run(ctx context.Context, from *cluster.Requester, instance string, epoch int64, call *schema.Errand) ([]byte, error) {
	if call.Spawn != nil {
		if out, done := k.Processes.Served(from.Kernel, instance, epoch, call.Number); done {
			return schema.Marshal(&out)
		}
	}
	pid, err := k.Members.Process(from.AuthorizedKey)
	if err != nil {
		return nil, err
	}
	message := schema.Message{Kind: schema.KindCommand, Type: call.Type()}
	message.Meta.Causation, message.Meta.Correlation = call.Causation, call.Correlation
	message.Meta.Errand = process.ErrandName(from.Kernel, instance, epoch, call.Number)
	if call.Terminate != nil {
		message.Data, err = schema.SyscallTerminate.Encode(call.Terminate)
	} else {
		message.Data, err = schema.SyscallSpawn.Encode(k.spawn(pid, call))
	}
	if err != nil {
		return nil, err
	}
	return k.Call(ctx, k.caller(from, pid), message)
}

// spawn is the data of a spawn for the process of another kernel. Of a default grant only what that process has is granted.
func (k *Kernel) spawn(pid int64, call *schema.Errand) *schema.SpawnInput {
	in := *call.Spawn
	if in.Capabilities == nil {
		return &in
	}
	grant := *in.Capabilities
	in.Capabilities = &grant
	if call.TicksLeft != nil {
		grant.ExpiresAtTick = new(k.Tick() + *call.TicksLeft)
	}
	if token := k.Tokens.Token(pid); call.Default && token != nil {
		most := &schema.GrantInput{AllowedSyscalls: grant.AllowedSyscalls, ResourceQuotas: grant.ResourceQuotas}
		process.Cut(most, token, k.Tick())
		grant.AllowedSyscalls, grant.ResourceQuotas, grant.HTTP = most.AllowedSyscalls, most.ResourceQuotas, nil
	}
	return &in
}

// Ask implements cluster.Kernel.
func (k *Kernel) Ask(ctx context.Context, from *cluster.Requester, typ string, data []byte) ([]byte, uint64, error) {
	caller := k.caller(from, kernel.Operator)
	if caller.Role = from.Role; caller.Role == "" {
		pid, err := k.Members.Process(from.AuthorizedKey)
		if err != nil {
			return nil, 0, err
		}
		caller.PID = pid
	}
	return k.CallProved(ctx, caller, schema.Message{Kind: schema.KindQuery, Type: typ, Data: data})
}

// caller is a requester that makes a call as a process. Its key is the one that signed: a standby's, if that leads the kernel.
func (k *Kernel) caller(from *cluster.Requester, pid int64) kernel.Caller {
	return kernel.Caller{
		PID: pid, Via: "cluster", Key: from.Signer.Fingerprint(),
		Conn: "k-" + from.Kernel + "-" + strconv.FormatUint(k.conns.Add(1), 10),
	}
}

// Package abroad connects a running kernel to its cluster (PROTOCOL 13). Kernel makes the calls of other kernels in this
// one; the runners of Outgoing wait for the outcome of calls at other kernels.
package abroad

import (
	"context"
	"errors"
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
	Do(ctx context.Context, own kernel.Own) (kernel.Answer, error)
	EndIntent(intent uint64, data []byte, failed *fault.Fault)
	Note(step schema.Request)
	Tick() int64
}

// Kernel implements cluster.Kernel with the running kernel.
type Kernel struct {
	Shell
	Members   *keyed.Members
	Processes *process.Processes
	Tokens    kernel.Tokens
	Variables interface {
		OpenAll(env map[string]string) (map[string]string, error)
	}
	conns atomic.Uint64
}

// OpenVariables implements cluster.Kernel.
func (k *Kernel) OpenVariables(env map[string]string) (map[string]string, error) {
	return k.Variables.OpenAll(env)
}

// Accept implements cluster.Kernel.
func (k *Kernel) Accept(ctx context.Context, from *cluster.Requester, in *schema.AcceptInput, waits func()) (*schema.AcceptOutput, error) {
	pid, err := k.Members.Process(from.AuthorizedKey)
	if err != nil {
		return nil, err
	}
	caller := k.caller(from, pid)
	caller.Kernel = true // no client can name the command
	answer, err := k.Do(ctx, kernel.Own{Caller: caller, Request: schema.IPCAccept.With(in), Causation: in.Causation, Correlation: in.Correlation, Waits: waits})
	if err != nil {
		return nil, err
	}
	out, invalid := schema.IPCAccept.Output().Decode(answer.Data)
	if invalid != nil {
		return nil, invalid
	}
	return out.(*schema.AcceptOutput), nil
}

// Taken implements cluster.Kernel.
func (k *Kernel) Taken(ctx context.Context, in *schema.TakenInput) (bool, error) {
	caller := k.own()
	caller.Kernel = true
	answer, err := k.Do(ctx, kernel.Own{Caller: caller, Request: schema.IPCTaken.With(in)})
	if err != nil {
		return false, err
	}
	out, invalid := schema.IPCTaken.Output().Decode(answer.Data)
	if invalid != nil {
		return false, invalid
	}
	return out.(*schema.TakenOutput).Taken, nil
}

// Run implements cluster.Kernel.
func (k *Kernel) Run(ctx context.Context, from *cluster.Requester, instance string, epoch int64, call *schema.Errand) ([]byte, error) {
	if call.Spawn != nil {
		if out, done := k.Processes.Served(from.Kernel, instance, epoch, call.Number); done {
			return k.recorded(ctx, &out)
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
	answer, err := k.Do(ctx, kernel.Own{Caller: k.caller(from, pid), Message: message})
	return answer.Data, err
}

// recorded returns the process that a call has spawned, once the kernel may tell others of it: Served knows it earlier.
func (k *Kernel) recorded(ctx context.Context, out *schema.SpawnOutput) ([]byte, error) {
	query := kernel.Own{Caller: k.own(), Request: schema.ProcessGet.With(&schema.ProcessGetInput{PID: out.ChildPID})}
	if _, err := k.Do(ctx, query); err != nil && !errors.Is(err, fault.NotFound) { // it may have ended, and be forgotten
		return nil, err
	}
	return schema.Marshal(out)
}

// spawn returns the data of a spawn for the process of another kernel. Of a default grant, only what that process may do is
// granted.
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
	answer, err := k.Do(ctx, kernel.Own{Caller: caller, Message: schema.Message{Kind: schema.KindQuery, Type: typ, Data: data}})
	return answer.Data, answer.Seq, err
}

// own is the kernel as the caller of a call.
func (k *Kernel) own() kernel.Caller {
	return kernel.Caller{PID: kernel.Operator, Via: kernel.ViaCluster, Conn: "k-" + strconv.FormatUint(k.conns.Add(1), 10)}
}

// caller returns a requester as the caller of a call as a process. Its key is the one that signed: that of a standby, if a
// standby leads the kernel.
func (k *Kernel) caller(from *cluster.Requester, pid int64) kernel.Caller {
	return kernel.Caller{
		PID: pid, Via: kernel.ViaCluster, Key: from.Signer.Fingerprint(),
		Conn: "k-" + from.Kernel + "-" + strconv.FormatUint(k.conns.Add(1), 10),
	}
}

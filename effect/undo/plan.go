package undo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// plan returns the plan to undo the entry, or a fault if it cannot be undone.
func (a *attempt) plan(ctx context.Context) (*plan, error) {
	switch in := a.entry.Input.(type) {
	case *schema.MemorySetInput:
		return a.memory(ctx, in.Key)
	case *schema.MemoryCompareAndSetInput:
		return a.memory(ctx, in.Key)
	case *schema.MemoryDeleteInput:
		return a.memory(ctx, in.Key)
	case *schema.MemoryRestoreInput:
		return a.memory(ctx, in.Key)
	case *schema.GrantInput:
		if in.Budget != nil {
			return nil, impossible("entry %d gave pid %d a budget too, of which some may be used up: set budget and grant again, with \"pwos cap grant\"", a.seq, in.PID)
		}
		return a.token(ctx, in.PID)
	case *schema.GrantDefaultInput:
		return a.token(ctx, in.PID)
	case *schema.RevokeInput:
		return a.token(ctx, in.PID)
	case *schema.RestoreTokenInput:
		return a.token(ctx, in.PID)
	case *schema.SendMsgInput:
		if in.Abroad() {
			return nil, impossible("entry %d sent a message to the kernel %s, which has it", a.seq, *in.ReceiverKernel)
		}
		return a.sent(ctx)
	case *schema.BroadcastInput:
		return a.sent(ctx)
	case *schema.UnsendInput:
		return a.unsent(ctx)
	case *schema.ResendInput:
		return a.mail(in.Message.MsgID, in.PIDs), nil
	}
	switch a.entry.Syscall.Domain {
	case schema.Process:
		return nil, impossible("entry %d is %s: a process that was started, ended or paused cannot be made as it was; what it changed in files is taken back by \"pwos undo AGENT\"", a.seq, a.entry.Message.Type)
	case schema.StepDomain:
		return nil, impossible("entry %d is %s: steps are undone by their names, as in \"pwos undo claude:12\"", a.seq, a.entry.Message.Type)
	case schema.Delta:
		return nil, impossible("entry %d is %s: the deltas of an agent are dropped with Syscall.Rollback, up to a tick", a.seq, a.entry.Message.Type)
	}
	if a.entry.Syscall.Outcome != "" || a.entry.Syscall.Ends() {
		return nil, impossible("entry %d is %s, whose effect is outside the kernel", a.seq, a.entry.Message.Type)
	}
	return nil, impossible("entry %d is %s: what can be undone are changes of memory, grants, unread mail, and tools whose manifest names their undo", a.seq, a.entry.Message.Type)
}

func impossible(form string, args ...any) *fault.Fault {
	return fault.UndoImpossible.New(form, args...)
}

// shown bounds the value that an answer repeats, in bytes.
const shown = 4 << 10

// memory undoes a change of a key.
func (a *attempt) memory(ctx context.Context, written string) (*plan, error) {
	origin, key := a.entry.Origin, strings.TrimPrefix(written, "/")
	m, err := a.before(ctx, schema.Memory)
	if err != nil {
		return nil, err
	}
	value, there := m.Memory.Value(origin, key)
	in := &schema.MemoryRestoreInput{Key: key}
	a.out.Origin, a.out.Key, a.out.Gone = origin, "/"+key, !there
	if there {
		if err := in.Set(value); err != nil {
			return nil, fmt.Errorf("restore /%s: %w", key, err)
		}
		if len(value) <= shown {
			a.out.Value = value
		}
	}
	return &plan{
		domain: schema.Memory, step: schema.MemoryRestore.With(in), undoes: &in.Undoes,
		touches: func(call *kernel.Call) bool {
			at := ""
			switch in := call.Input.(type) {
			case *schema.MemorySetInput:
				at = in.Key
			case *schema.MemoryCompareAndSetInput:
				at = in.Key
			case *schema.MemoryDeleteInput:
				at = in.Key
			case *schema.MemoryRestoreInput:
				at = in.Key
			}
			return call.Origin == origin && strings.TrimPrefix(at, "/") == key
		},
	}, nil
}

// token undoes a change of a process's token.
func (a *attempt) token(ctx context.Context, pid int64) (*plan, error) {
	m, err := a.before(ctx, schema.Capability)
	if err != nil {
		return nil, err
	}
	in := &schema.RestoreTokenInput{PID: pid, Token: m.Tokens.Granted(pid)}
	a.out.Holder, a.out.Token, a.out.Gone = pid, in.Token, in.Token == nil
	return &plan{
		domain: schema.Capability, step: schema.CapabilityRestore.With(in), undoes: &in.Undoes, moment: []schema.Domain{schema.Process},
		touches: func(call *kernel.Call) bool {
			switch in := call.Input.(type) {
			case *schema.GrantInput:
				return in.PID == pid
			case *schema.GrantDefaultInput:
				return in.PID == pid
			case *schema.EndowInput:
				return in.PID == pid
			case *schema.RevokeInput:
				return in.PID == pid
			case *schema.RestoreTokenInput:
				return in.PID == pid
			case *schema.StripInput:
				return slices.Contains(in.PIDs, pid)
			case *schema.RevokeExpiredInput:
				out, err := schema.CapabilityRevokeExpired.Decode(call.Data)
				return err != nil || slices.Contains(out.Revoked, pid)
			}
			return false
		},
	}, nil
}

// sent undoes the sending of a message: the last message in the state after the entry.
func (a *attempt) sent(ctx context.Context) (*plan, error) {
	m, err := a.History.Fold(ctx, a.seq, a.progress(), schema.Ipc)
	if err != nil {
		return nil, err
	}
	id := m.Mail.Last()
	pids := m.Mail.Holders(id)
	if len(pids) == 0 {
		return nil, fault.UndoNothing.New("entry %d changed nothing: its message got into no mailbox", a.seq)
	}
	return a.mail(id, pids), nil
}

// mail removes a message from mailboxes. No later command can have changed it: a message is in a mailbox or not.
func (a *attempt) mail(id int64, pids []int64) *plan {
	in := &schema.UnsendInput{MsgID: id, PIDs: pids}
	a.out.MsgID = id
	return &plan{
		domain: schema.Ipc, step: schema.IPCUnsend.With(in), undoes: &in.Undoes,
		answered: func(answer []byte) {
			if out, err := schema.IPCUnsend.Output().Decode(answer); err == nil { // an answer of the kernel always decodes
				a.out.Taken, a.out.Read = out.(*schema.UnsendOutput).Taken, out.(*schema.UnsendOutput).Read
			}
		},
	}
}

// unsent puts a message back that was removed from mailboxes.
func (a *attempt) unsent(ctx context.Context) (*plan, error) {
	m, err := a.before(ctx, schema.Ipc)
	if err != nil {
		return nil, err
	}
	out, failed := schema.IPCUnsend.Output().Decode(a.entry.Data)
	if failed != nil {
		return nil, fmt.Errorf("read answer of entry %d: %w", a.seq, failed)
	}
	in := m.Mail.Resend(a.entry.Input.(*schema.UnsendInput).MsgID, out.(*schema.UnsendOutput).Taken)
	if in == nil {
		return nil, fmt.Errorf("undo entry %d: the message that it took is not in the journal", a.seq)
	}
	a.out.MsgID, a.out.Put = in.Message.MsgID, in.PIDs
	return &plan{domain: schema.Ipc, step: schema.IPCResend.With(in), undoes: &in.Undoes}, nil
}

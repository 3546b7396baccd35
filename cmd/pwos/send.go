package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// sendFlags are the flags of `pwos send`.
type sendFlags struct {
	in      schema.SendMsgInput
	payload cli.Payload
}

func newSend(a *app) *cobra.Command {
	var f sendFlags
	cmd := &cobra.Command{
		Use:   "send AGENT|operator [PAYLOAD|-]",
		Short: "put a message into a process's mailbox",
		Long: `send puts a message into a process's mailbox, or from an agent into the operator's,
which "pwos recv operator" reads. If the operator sends to PID 0, every process gets it.
The default PAYLOAD is null.

AGENT is a name or a PID; with @KERNEL it is a process of another kernel of the cluster, and
operator@KERNEL is that kernel's operator. If that kernel cannot be reached the message is QUEUED: this kernel
delivers it once it can, or drops it when it expires.

` + cli.PayloadHelp + `

Exit status: 0 delivered or queued, 1 it had expired, 3 denied by capability or governance,
4 no such mailbox, 5 the mailbox is full.`,
		Example: `  pwos send planner hello
  pwos send 7 '{"job": 1}' --intent work --priority URGENT
  date | pwos send 7 - --as 3
  pwos send operator done --as 3
  pwos send 12@beta hello`,
		Args: cli.Arguments(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := &f.in
			var err error
			if in.ReceiverKernel, err = a.Address(cmd, args[0], arg.Who{Operator: true}, &in.ReceiverPID); err != nil {
				return cli.Usage(cmd, err)
			}
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				if args[0] == arg.Operator && (in.PID == nil || *in.PID == 0) {
					if err := notOperator(ctx, c); err != nil {
						return err
					}
				}
				in.Payload = schema.Value("null")
				if len(args) == 2 {
					if in.Payload, err = a.Value(ctx, cmd, f.payload, args[1]); err != nil {
						return err
					}
				}
				return a.sendMessage(ctx, c, in)
			})
		},
	}
	cli.MemberFlag(cmd, &f.in, "intent", "intent", "topic of the message: receivers can select by it, policies can deny by it")
	cli.MemberFlag(cmd, &f.in, "priority", "priority", "LOW, NORMAL, HIGH or URGENT, which is received first (default NORMAL)")
	a.AgentFlag(cmd, &f.in, "pid", "as", "process to send as (default 0, the operator)")
	cli.MemberFlag(cmd, &f.in, "expires_at_tick", "expires-at-tick", "last tick at which it may be received (default: it does not expire)")
	f.payload.Add(cmd)
	return cmd
}

// notOperator returns an error if the caller is the operator, whose message to PID 0 would be a broadcast. Only the
// operator may query PID 0, so the kernel's answer tells whether the caller is the operator.
func notOperator(ctx context.Context, c *client.Client) error {
	var operator int64
	_, err := cli.Invoke(ctx, c, schema.CapabilityGet.Type, &schema.CapabilityGetInput{PID: &operator})
	switch cli.KernelCode(err) {
	case 403:
		return nil
	case 404:
		return errors.New("the operator does not send to itself: name the sender with --as PID, or send to every process with PID 0")
	}
	return err
}

// sendMessage sends in, and returns an error if the message was neither delivered nor queued.
func (a *app) sendMessage(ctx context.Context, c *client.Client, in *schema.SendMsgInput) error {
	const typ = "Syscall.SendMsg"
	payload := in.Payload
	in.Payload = nil
	whole, err := cli.WithRaw(in, "payload", payload)
	if err != nil {
		return err
	}
	data, err := cli.Invoke(ctx, c, typ, whole)
	if err != nil {
		return err
	}
	out, err := view.AnswerAs[schema.SendMsgOutput](typ, data)
	if err != nil {
		return err
	}
	if err := a.PrintValue(data); err != nil {
		return err
	}
	switch out.Status {
	case schema.MailDelivered, schema.MailQueued:
		return nil
	case "BLOCKED_BY_GOVERNANCE":
		return fault.IpcBlocked.New("not delivered: %s", out.Reason)
	case "MAILBOX_FULL":
		return fault.IpcMailboxFull.New("not delivered: %s", out.Reason)
	}
	return errors.New("not delivered: " + out.Reason)
}

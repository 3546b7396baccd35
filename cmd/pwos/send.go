package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// sendFlags are the flags of `pwos send`.
type sendFlags struct {
	intent, priority string
	as, expires      numberFlag
	payload          payload
}

func newSend(a *app) *cobra.Command {
	var f sendFlags
	cmd := &cobra.Command{
		Use:   "send PID|operator [PAYLOAD|-]",
		Short: "put a message into a process's mailbox",
		Long: `send puts a message into a process's mailbox, or from an agent into the operator's,
which "pwos recv operator" reads. From the operator, PID 0 stands for every process.
Without a PAYLOAD it is null.

` + payloadHelp + `

Exit status: 0 delivered, 1 it had expired, 3 denied by capability or governance,
4 no such mailbox, 5 the mailbox is full.`,
		Example: `  pwos send 7 hello
  pwos send 7 '{"job": 1}' --intent work --priority URGENT
  date | pwos send 7 - --as 3
  pwos send operator done --as 3`,
		Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.input(cmd, args[0])
			if err != nil {
				return usage(cmd, err)
			}
			return a.withKernel(cmd.Context(), usualTimeout, func(ctx context.Context, c *client.Client) error {
				if args[0] == operatorName && (in.PID == nil || *in.PID == 0) {
					if err := notOperator(ctx, c); err != nil {
						return err
					}
				}
				in.Payload = schema.Value("null")
				if len(args) == 2 {
					if in.Payload, err = a.value(ctx, cmd, f.payload, args[1]); err != nil {
						return err
					}
				}
				return a.sendMessage(ctx, c, in)
			})
		},
	}
	cmd.Flags().StringVar(&f.intent, "intent", "", "what the message is about: receivers select by it, governance denies by it")
	cmd.Flags().StringVar(&f.priority, "priority", "", "LOW, NORMAL, HIGH or URGENT, which is received first (default NORMAL)")
	f.as.add(cmd, "as", "process to send as (default 0, the operator)")
	f.expires.add(cmd, "expires-at-tick", "last tick at which it may be received (default: it does not expire)")
	f.payload.add(cmd)
	return cmd
}

// input is all of the message but its payload; its errors are wrong usage.
func (f *sendFlags) input(cmd *cobra.Command, receiver string) (*schema.SendMsgInput, error) {
	pid, err := mailboxOf(receiver, 0)
	if err != nil {
		return nil, err
	}
	in := &schema.SendMsgInput{
		ReceiverPID: pid,
		Intent:      textGiven(cmd, "intent", f.intent),
		Priority:    textGiven(cmd, "priority", f.priority),
	}
	if in.PID, err = f.as.given(cmd, "as", 0); err != nil {
		return nil, err
	}
	if in.ExpiresAtTick, err = f.expires.given(cmd, "expires-at-tick", 0); err != nil {
		return nil, err
	}
	return in, checkPriority(in.Priority)
}

// notOperator refuses the operator itself as the sender: the kernel would take its message to PID 0 for one to everybody. Who
// the sender is, the kernel tells: only the operator may ask about PID 0.
func notOperator(ctx context.Context, c *client.Client) error {
	var operator int64
	_, err := invoke(ctx, c, schema.CapabilityGet.Type, &schema.CapabilityGetInput{PID: &operator})
	switch kernelCode(err) {
	case 403:
		return nil
	case 404:
		return errors.New("the operator does not send to itself: name the sender with --as PID, or send to every process with PID 0")
	}
	return err
}

// checkPriority refuses what is no priority.
func checkPriority(priority *string) error {
	if priority == nil || slices.Contains([]string{"LOW", "NORMAL", "HIGH", "URGENT"}, *priority) {
		return nil
	}
	return fmt.Errorf("--priority is LOW, NORMAL, HIGH or URGENT, not %q", *priority)
}

// sendMessage sends in. That the kernel did as it was told does not mean that the message arrived.
func (a *app) sendMessage(ctx context.Context, c *client.Client, in *schema.SendMsgInput) error {
	const typ = "Syscall.SendMsg"
	data, err := invoke(ctx, c, typ, sendData(in))
	if err != nil {
		return err
	}
	out, err := answerAs[schema.SendMsgOutput](typ, data)
	if err != nil {
		return err
	}
	if err := a.printValue(data); err != nil {
		return err
	}
	switch out.Status {
	case "DELIVERED":
		return nil
	case "BLOCKED_BY_GOVERNANCE":
		return fault.IpcBlocked.New("not delivered: %s", out.Reason)
	case "MAILBOX_FULL":
		return fault.IpcMailboxFull.New("not delivered: %s", out.Reason)
	}
	return errors.New("not delivered: " + out.Reason)
}

// sendData is the data of Syscall.SendMsg. The payload is to arrive byte for byte, so it is not marshalled with the rest.
func sendData(in *schema.SendMsgInput) schema.Value {
	o := object(nil).integer("receiver_pid", in.ReceiverPID).raw("payload", in.Payload)
	if in.Intent != nil {
		o = o.text("intent", *in.Intent)
	}
	if in.Priority != nil {
		o = o.text("priority", *in.Priority)
	}
	if in.PID != nil {
		o = o.integer("pid", *in.PID)
	}
	if in.ExpiresAtTick != nil {
		o = o.integer("expires_at_tick", *in.ExpiresAtTick)
	}
	return o.close()
}

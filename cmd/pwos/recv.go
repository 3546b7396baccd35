package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// recvFlags are the flags of `pwos recv`.
type recvFlags struct {
	max    numberFlag
	intent string
	wait   time.Duration
	follow bool
}

// maxWait is how long one Ipc.Receive waits at most.
const maxWait = 10 * time.Minute

func newRecv(a *app) *cobra.Command {
	var f recvFlags
	cmd := &cobra.Command{
		Use:   "recv PID|operator",
		Short: "take messages out of a process's mailbox",
		Long: `recv takes messages out of a process's mailbox, or out of the operator's own, urgent
ones first, and prints them: a line of JSON each where stdout is no terminal. Without a message it prints nothing
and exits with 0; --wait waits for the first one. --follow prints each as it comes,
until interrupted or until the process ends.

What was taken is gone from the mailbox, also if recv is killed before it printed it.
With --follow it is gone once it is printed (Ipc.Ack): what was not is delivered again,
marked "redelivered". Whoever else receives from the mailbox gets what this one does not.

Exit status: 3 the process may not receive, or with --follow not acknowledge, or it
never was; 1 it has ended, unless --follow saw it end.`,
		Example: `  pwos recv 7
  pwos recv 7 --max 1 --intent work
  pwos recv 7 --wait 5s
  pwos recv -f 7 | jq .payload
  pwos recv operator`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.input(cmd, args[0])
			if err != nil {
				return usage(cmd, err)
			}
			if f.follow {
				return a.recvFollow(cmd.Context(), in)
			}
			return a.recv(cmd.Context(), in, f.wait+usualTimeout)
		},
	}
	f.max.add(cmd, "max", "most messages to take at once, 1 to 1000 (default: what is there)")
	cmd.Flags().StringVar(&f.intent, "intent", "", "only messages of this intent")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "how long to wait for a first message, such as 5s, at most 10m")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "print messages as they come, until interrupted or until the process ends")
	return cmd
}

// input is what the command line asks for; its errors are wrong usage.
func (f *recvFlags) input(cmd *cobra.Command, mailbox string) (*schema.ReceiveInput, error) {
	pid, err := mailboxOf(mailbox, 1)
	if err != nil {
		return nil, err
	}
	in := &schema.ReceiveInput{Target: schema.Target{PID: &pid}, Intent: textGiven(cmd, "intent", f.intent)}
	if in.Max, err = f.max.given(cmd, "max", 1); err != nil {
		return nil, err
	}
	wait := f.wait
	if f.follow && wait == 0 {
		wait = time.Minute
	}
	switch {
	case in.Max != nil && *in.Max > schema.MaxReceive:
		return nil, fmt.Errorf("--max is at most %d", schema.MaxReceive)
	case wait < 0 || wait > maxWait:
		return nil, fmt.Errorf("--wait is from 0 to %v, not %v", maxWait, wait)
	case cmd.Flags().Changed("wait") && wait < time.Millisecond && wait != 0:
		return nil, errors.New("--wait is in milliseconds at the finest")
	}
	if ms := wait.Milliseconds(); ms > 0 {
		in.WaitMS = &ms
	}
	return in, nil
}

// recv prints what the mailbox holds.
func (a *app) recv(ctx context.Context, in *schema.ReceiveInput, otherwise time.Duration) error {
	return a.withKernel(ctx, otherwise, func(ctx context.Context, c *client.Client) error {
		messages, err := receive(ctx, c, in)
		if err != nil {
			return err
		}
		_, err = mailFeed(a).messages(messages)
		return err
	})
}

// receive takes messages out of a mailbox.
func receive(ctx context.Context, c *client.Client, in *schema.ReceiveInput) ([]schema.Value, error) {
	data, err := invoke(ctx, c, schema.IPCReceive.Type, in)
	if err != nil {
		return nil, err
	}
	members, _ := objectOf(data)
	messages, _ := arrayOf(members["messages"])
	return messages, nil
}

func mailFeed(a *app) *feed {
	return newFeed(a, column{"id", 5}, column{"from", 5}, column{"priority", 8}, column{"intent", 12}, column{"payload", 0})
}

// messages writes messages of a mailbox, and returns the numbers of those that it has written.
func (f *feed) messages(list []schema.Value) (written []int64, err error) {
	for _, raw := range list {
		m, err := answerAs[schema.MailMessage](schema.IPCReceive.Type, raw)
		if err != nil {
			return written, err
		}
		err = f.write(raw, strconv.FormatInt(m.MsgID, 10), strconv.FormatInt(m.SenderPID, 10), m.Priority, escaped(m.Intent), shown(m.Payload))
		if err != nil {
			return written, err
		}
		written = append(written, m.MsgID)
	}
	return written, nil
}

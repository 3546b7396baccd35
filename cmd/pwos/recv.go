package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// recvFlags are the flags of `pwos recv`.
type recvFlags struct {
	in     schema.ReceiveInput
	wait   time.Duration
	follow bool
}

// maxWait is the longest wait of one Ipc.Receive.
const maxWait = 10 * time.Minute

func newRecv(a *app) *cobra.Command {
	var f recvFlags
	cmd := &cobra.Command{
		Use:   "recv AGENT|operator",
		Short: "take messages out of a process's mailbox",
		Long: `recv takes messages out of a process's mailbox, or out of the operator's own, urgent
messages first, and prints them, one line of JSON each if stdout is no terminal. An empty
mailbox prints nothing and exits with 0; --wait waits for a message. --follow prints
messages as they arrive, until interrupted or until the process ends.

recv removes what it takes from the mailbox, even if it is killed before it prints it.
With --follow a message is removed after it was printed (Ipc.Ack); one that was not is
delivered again, marked "redelivered". Several receivers of one mailbox share its
messages.

Exit status: 3 the process may not receive (with --follow: or acknowledge), or it
never existed; 1 it has ended, unless --follow saw it end.`,
		Example: `  pwos recv planner
  pwos recv 7 --max 1 --intent work
  pwos recv 7 --wait 5s
  pwos recv -f 7 | jq .payload
  pwos recv operator`,
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.input(a, cmd, args[0])
			if err != nil {
				return cli.Usage(cmd, err)
			}
			if f.follow {
				return a.recvFollow(cmd.Context(), in)
			}
			return a.recv(cmd.Context(), in, f.wait+cli.UsualTimeout)
		},
	}
	cli.MemberFlag(cmd, &f.in, "max", "max", "most messages to take at once, 1 to 1000 (default: all that wait)")
	cli.MemberFlag(cmd, &f.in, "intent", "intent", "only messages with this intent")
	cmd.Flags().Var((*cli.SpanFlag)(&f.wait), "wait", "how long to wait for a first message, such as 5s, at most 10m")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "print messages as they arrive, until interrupted or until the process ends")
	return cmd
}

// input returns the call's data for the command line. Its errors are usage errors.
func (f *recvFlags) input(a *app, cmd *cobra.Command, mailbox string) (*schema.ReceiveInput, error) {
	in := &f.in
	in.PID = new(int64)
	if err := a.Agent(cmd, mailbox, arg.Who{Mailbox: true}, in.PID); err != nil {
		return nil, err
	}
	wait := f.wait
	if f.follow && wait == 0 {
		wait = time.Minute
	}
	switch {
	case wait < 0 || wait > maxWait:
		return nil, fmt.Errorf("--wait must be from 0 to %v, not %v", maxWait, wait)
	case cmd.Flags().Changed("wait") && wait < time.Millisecond && wait != 0:
		return nil, errors.New("--wait must be a whole number of milliseconds")
	}
	if ms := wait.Milliseconds(); ms > 0 {
		in.WaitMS = &ms
	}
	return in, nil
}

// recv receives once and prints the messages.
func (a *app) recv(ctx context.Context, in *schema.ReceiveInput, otherwise time.Duration) error {
	return a.WithKernel(ctx, otherwise, func(ctx context.Context, c *client.Client) error {
		messages, err := receive(ctx, c, in)
		if err != nil {
			return err
		}
		_, err = printMail(mailFeed(a), messages)
		return err
	})
}

// receive receives messages from a mailbox.
func receive(ctx context.Context, c *client.Client, in *schema.ReceiveInput) ([]schema.Value, error) {
	data, err := cli.Invoke(ctx, c, schema.IPCReceive.Type, in)
	if err != nil {
		return nil, err
	}
	members, _ := view.Members(data)
	messages, _ := view.Elements(members["messages"])
	return messages, nil
}

func mailFeed(a *app) *cli.Feed {
	return cli.NewFeed(a.App, cli.Col("id", 5), cli.Col("from", 5), cli.Col("priority", 8), cli.Col("intent", 12), cli.Col("payload", 0))
}

// printMail prints messages and returns the ids of those that it printed.
func printMail(f *cli.Feed, list []schema.Value) (written []int64, err error) {
	for _, raw := range list {
		m, err := view.AnswerAs[schema.MailMessage](schema.IPCReceive.Type, raw)
		if err != nil {
			return written, err
		}
		from := strconv.FormatInt(m.SenderPID, 10)
		if m.SenderKernel != "" {
			from = view.At(m.SenderPID, m.SenderKernel)
		}
		err = f.Write(raw, strconv.FormatInt(m.MsgID, 10), from, m.Priority, view.Escaped(m.Intent), view.Shown(m.Payload))
		if err != nil {
			return written, err
		}
		written = append(written, m.MsgID)
	}
	return written, nil
}

// noMessage is an id that no message has.
const noMessage = 1<<53 - 1

// recvFollow prints messages as they arrive. It polls Ipc.Receive instead of subscribing, because a mailbox has
// only one subscriber, which may be the process itself, and a subscription has no filter. It acknowledges the messages that it
// printed; the others are delivered again when the connection ends.
func (a *app) recvFollow(ctx context.Context, in *schema.ReceiveInput) error {
	keep := true
	in.Ack = &keep
	return a.WithKernel(ctx, 0, func(ctx context.Context, c *client.Client) error {
		// This fails before the first receive if the process may not acknowledge: otherwise it would receive the same messages
		// again and again.
		if err := acknowledge(ctx, c, in, []int64{noMessage}); err != nil {
			return err
		}
		out, ended := mailFeed(a), false
		for {
			messages, err := receive(ctx, c, in)
			var printed []int64
			var unprinted error
			if err == nil {
				printed, unprinted = printMail(out, messages)
			}
			if len(printed) > 0 {
				err = acknowledge(ctx, c, in, printed)
			}
			if cli.KernelCode(err) == 410 {
				err = nil // the process has ended, so no further message arrives
				ended = true
			}
			if err := errors.Join(unprinted, err); err != nil || ended {
				return err
			}
		}
	})
}

// acknowledge acknowledges messages, even if ctx has ended.
func acknowledge(ctx context.Context, c *client.Client, in *schema.ReceiveInput, ids []int64) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), cli.UsualTimeout, cli.ErrTimeout)
	defer cancel()
	_, err := cli.Invoke(ctx, c, schema.IPCAck.Type, &schema.MailAckInput{Target: in.Target, MsgIDs: ids})
	return err
}

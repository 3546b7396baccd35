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

// Bounds of one Ipc.Receive.
const (
	maxReceive = 1000
	maxWait    = 10 * time.Minute
)

func newRecv(a *app) *cobra.Command {
	var f recvFlags
	cmd := &cobra.Command{
		Use:   "recv PID",
		Short: "take messages out of a process's mailbox",
		Long: `recv takes messages out of a process's mailbox, urgent ones first, and prints them: a
line of JSON each where stdout is no terminal. Without a message it prints nothing
and exits with 0; --wait waits for the first one, --follow goes on until interrupted.

What was taken is gone from the mailbox, also if recv is killed before it printed it.

Exit status: 3 the process may not receive, 4 there is no such mailbox, or no more.`,
		Example: `  pwos recv 7
  pwos recv 7 --max 100 --intent work
  pwos recv 7 --wait 5s
  pwos recv 7 --follow | jq .payload`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.input(cmd, args[0])
			if err != nil {
				return usage(cmd, err)
			}
			if f.follow {
				return a.recv(cmd.Context(), in, 0, true)
			}
			return a.recv(cmd.Context(), in, f.wait+usualTimeout, false)
		},
	}
	f.max.add(cmd, "max", "most messages to take at once, 1 to 1000 (default 1; with --follow 1000)")
	cmd.Flags().StringVar(&f.intent, "intent", "", "only messages of this intent")
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "how long to wait for a first message, such as 5s, at most 10m")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "wait for more, until interrupted or until the process ends")
	return cmd
}

// input is what the command line asks for; its errors are wrong usage.
func (f *recvFlags) input(cmd *cobra.Command, mailbox string) (*schema.ReceiveInput, error) {
	pid, err := pidOf(mailbox, 1)
	if err != nil {
		return nil, err
	}
	in := &schema.ReceiveInput{Target: schema.Target{PID: &pid}, Intent: textGiven(cmd, "intent", f.intent)}
	if in.Max, err = f.max.given(cmd, "max", 1); err != nil {
		return nil, err
	}
	wait, most := f.wait, int64(maxReceive)
	if f.follow {
		if wait == 0 {
			wait = time.Minute
		}
		if in.Max == nil {
			in.Max = &most
		}
	}
	switch {
	case in.Max != nil && *in.Max > most:
		return nil, fmt.Errorf("--max is at most %d", most)
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

// recv prints what the mailbox holds, once or without end.
func (a *app) recv(ctx context.Context, in *schema.ReceiveInput, otherwise time.Duration, follow bool) error {
	return a.withKernel(ctx, otherwise, func(ctx context.Context, c *client.Client) error {
		out := newFeed(a, column{"id", 5}, column{"from", 5}, column{"priority", 8}, column{"intent", 12}, column{"payload", 0})
		for {
			data, err := invoke(ctx, c, "Ipc.Receive", in)
			if err != nil {
				return err
			}
			members, _ := objectOf(data)
			messages, _ := arrayOf(members["messages"])
			for _, raw := range messages {
				if err := out.message(raw); err != nil {
					return err
				}
			}
			if !follow {
				return nil
			}
		}
	})
}

// message writes a message of a mailbox.
func (f *feed) message(raw schema.Value) error {
	m, err := answerAs[schema.MailMessage]("Ipc.Receive", raw)
	if err != nil {
		return err
	}
	return f.write(raw, strconv.FormatInt(m.MsgID, 10), strconv.FormatInt(m.SenderPID, 10), m.Priority, escaped(m.Intent), shown(m.Payload))
}

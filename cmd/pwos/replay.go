package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newReplay(a *app) *cobra.Command {
	in := new(schema.ReplayInput)
	cmd := &cobra.Command{
		Use:   "replay --until SEQ",
		Short: "show what the state was after an entry of the journal",
		Long: `replay rebuilds the state of the kernel as it was after an entry of the journal, beside
the live state, which does not change. It shows a summary, with --get the value
of a key then, with --pid a process: its descriptor, its token, its agent's memory and
the number of its messages. "pwos audit log" has the numbers of entries.

On a long journal it prints its progress to stderr; an interrupt cancels it.

Exit status: 3 denied, 4 no such entry, key or process then.`,
		Example: `  pwos replay --until 120
  pwos replay --until 120 --get notes/1
  pwos replay --until 120 --pid 7 --json`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case in.UntilSeq == 0:
				return cli.Usage(cmd, errors.New(`--until is required: give the number of an entry, as "pwos audit log" shows it`))
			case in.Key != nil && in.PID != nil:
				return cli.Usage(cmd, errors.New("--get and --pid exclude each other: give one of them"))
			}
			return a.WithKernel(cmd.Context(), 0, func(ctx context.Context, c *client.Client) error {
				out, data, err := reported(ctx, a, c, schema.MessageReplay, in)
				switch {
				case err != nil:
					return err
				case in.Key != nil:
					return a.PrintValue(out.Value)
				}
				return a.PrintEither(data, view.ReplayTable(out, time.UnixMilli(out.Time).Format(time.DateTime)))
			})
		},
	}
	cmd.Flags().Var(cli.EntryFlag(&in.UntilSeq), "until", "number of the last entry to replay")
	cli.MemberFlag(cmd, in, "key", "get", "show the value of this key then")
	a.AgentFlag(cmd, in, "pid", "pid", "show this process then")
	return cmd
}

// reported makes a call and prints its progress to stderr. It returns the answer, decoded and raw.
func reported[In, Out any](ctx context.Context, a *app, c *client.Client, row schema.Callable[In, Out], in *In) (*Out, schema.Value, error) {
	data, err := row.Encode(in)
	if err != nil {
		return nil, nil, err
	}
	answer, err := c.DoReporting(ctx, schema.Message{Kind: row.Row().Kind, Type: row.Row().Type, Data: data}, func(e *schema.ProgressedEvent) {
		a.Say("%.0f of %.0f entries read", e.Progress, view.Deref(e.Total))
	})
	if err != nil {
		return nil, nil, err
	}
	out, err := row.Decode(answer.Data)
	return out, answer.Data, err
}

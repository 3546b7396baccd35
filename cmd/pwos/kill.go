package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

func newKill(a *app) *cobra.Command {
	var reason string
	var all bool
	cmd := &cobra.Command{
		Use:   "kill PID",
		Short: "end a process and all its descendants",
		Long: `kill ends a process with all its descendants: their capabilities, what they held and
their mailboxes go, and their programs: they are asked to end, and after some seconds
made to. kill returns when nothing of them is left. Ending one that has ended is fine.
--all ends all agents.

Exit status: 4 there never was such a process.`,
		Example: `  pwos kill 7
  pwos kill 7 --reason 'ran away'
  pwos kill --all`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case all == (len(args) == 1):
				return usage(cmd, errors.New("name one PID, or --all"))
			case all:
				return a.killAll(cmd.Context(), textGiven(cmd, "reason", reason))
			}
			pid, err := pidOf(args[0], 1)
			if err != nil {
				return usage(cmd, err)
			}
			return a.show(cmd.Context(), schema.SyscallTerminate.Type, &schema.TerminateInput{
				TargetPID: pid, Reason: textGiven(cmd, "reason", reason),
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	cmd.Flags().BoolVar(&all, "all", false, "all agents")
	return cmd
}

// killAll ends what the operator has spawned, and with that all that lives. What is spawned meanwhile is ended too.
func (a *app) killAll(ctx context.Context, reason *string) error {
	return a.withKernel(ctx, usualTimeout, func(ctx context.Context, c *client.Client) error {
		for {
			processes, err := listProcesses(ctx, c, nil)
			if err != nil {
				return err
			}
			living := slices.DeleteFunc(processes, func(p process) bool { return p.State == terminated || p.ParentPID != 0 })
			if len(living) == 0 {
				return nil
			}
			for part := range slices.Chunk(living, killsAtOnce) {
				if err := a.killEach(ctx, c, part, reason); err != nil {
					return err
				}
			}
		}
	})
}

// killsAtOnce is how many agents are told to end at the same time: each may take all the time that it has for that.
const killsAtOnce = 64

func (a *app) killEach(ctx context.Context, c *client.Client, living []process, reason *string) error {
	answers, errs := make([]schema.Value, len(living)), make([]error, len(living))
	var calls sync.WaitGroup
	for i, p := range living {
		calls.Go(func() {
			answers[i], errs[i] = invoke(ctx, c, schema.SyscallTerminate.Type, &schema.TerminateInput{TargetPID: p.PID, Reason: reason})
		})
	}
	calls.Wait()
	for _, data := range answers {
		if data != nil {
			errs = append(errs, a.printValue(data))
		}
	}
	return errors.Join(errs...)
}

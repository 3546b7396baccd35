package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newKill(a *app) *cobra.Command {
	in := new(schema.TerminateInput)
	var all bool
	cmd := &cobra.Command{
		Use:   "kill AGENT",
		Short: "end a process and all its descendants",
		Long: `kill ends a process with all its descendants. Their capabilities, resources and
mailboxes are released. Their programs are asked to end, and killed after some seconds.
kill returns when all of them have ended. To end a process that has ended is not an error.
--all ends all agents. AGENT is a name or a PID; 12@beta is process 12 of the kernel beta, if it was
spawned from here.

Exit status: 4 no process ever had this name or PID.`,
		Example: `  pwos kill planner
  pwos kill 7
  pwos kill 12@beta
  pwos kill 7 --reason 'ran away'
  pwos kill --all`,
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case all == (len(args) == 1):
				return cli.Usage(cmd, errors.New("name one agent, or --all"))
			case all:
				return a.killAll(cmd.Context(), in.Reason)
			}
			var err error
			if in.Kernel, err = a.Address(cmd, args[0], arg.Who{}, &in.TargetPID); err != nil {
				return cli.Usage(cmd, err)
			}
			return a.Show(cmd.Context(), schema.SyscallTerminate.Type, in, a.PrintValue)
		},
	}
	cli.MemberFlag(cmd, in, "reason", "reason", "the reason, for the record")
	cmd.Flags().BoolVar(&all, "all", false, "all agents")
	return cmd
}

// killAll ends all processes: those that the operator spawned, and so their descendants. It repeats until none is left, since
// processes may be spawned meanwhile.
func (a *app) killAll(ctx context.Context, reason *string) error {
	return a.WithKernel(ctx, cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
		for {
			processes, err := cli.ListProcesses(ctx, c, nil)
			if err != nil {
				return err
			}
			living := slices.DeleteFunc(processes, func(p view.Process) bool { return p.State == view.Terminated || p.ParentPID != 0 })
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

// killsAtOnce is the number of agents that are ended concurrently. Each may take its whole grace period.
const killsAtOnce = 64

func (a *app) killEach(ctx context.Context, c *client.Client, living []view.Process, reason *string) error {
	answers, errs := make([]schema.Value, len(living)), make([]error, len(living))
	var calls sync.WaitGroup
	for i, p := range living {
		calls.Go(func() {
			answers[i], errs[i] = cli.Invoke(ctx, c, schema.SyscallTerminate.Type, &schema.TerminateInput{TargetPID: p.PID, Reason: reason})
		})
	}
	calls.Wait()
	for _, data := range answers {
		if data != nil {
			errs = append(errs, a.PrintValue(data))
		}
	}
	return errors.Join(errs...)
}

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
)

func newPause(a *app) *cobra.Command {
	return pausing(a, schema.ProcessPause.Type, &cobra.Command{
		Use:   "pause AGENT",
		Short: "pause agents",
		Long: `pause stops a process with all its descendants, or all agents with --all:
their programs get SIGSTOP, and their calls wait, in their order, until
"pwos resume". No call is refused or lost. An effect in flight continues to
its end, and time limits keep running. An agent stays paused when the kernel is
restarted. pause prints how many processes it paused.

Exit status: 4 no process ever had this name or PID.`,
		Example: `  pwos pause planner
  pwos pause --all`,
	})
}

// pausing completes the command of a syscall that takes a PID or all.
func pausing(a *app, typ string, cmd *cobra.Command) *cobra.Command {
	in := new(schema.PauseInput)
	cmd.Flags().BoolVar(&in.All, "all", false, "all agents")
	cmd.Args = cli.Arguments(cobra.MaximumNArgs(1))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, text := range args {
			in.TargetPID = new(int64)
			if err := a.Agent(cmd, text, arg.Who{}, in.TargetPID); err != nil {
				return cli.Usage(cmd, err)
			}
		}
		if in.All == (in.TargetPID != nil) {
			return cli.Usage(cmd, errors.New("name one agent, or --all"))
		}
		return a.Show(cmd.Context(), typ, in, a.PrintValue)
	}
	return cmd
}

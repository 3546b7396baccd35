package main

import (
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/schema"
)

func newKill(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "kill PID",
		Short: "end a process and all its descendants",
		Long: `kill ends a process with all its descendants: their capabilities, what they held and
their mailboxes go, and their programs: they are asked to end, and after some seconds
made to. kill returns when nothing of them is left. Ending one that has ended is fine.

Exit status: 4 there never was such a process.`,
		Example: `  pwos kill 7
  pwos kill 7 --reason 'ran away'`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
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
	return cmd
}

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/schema"
)

func newPause(a *app) *cobra.Command {
	return pausing(a, schema.ProcessPause.Type, &cobra.Command{
		Use:   "pause PID",
		Short: "stop agents where they are",
		Long: `pause stops a process with all its descendants where they are, or with --all all agents:
their programs get SIGSTOP, and the calls that they make wait, in their order, until
"pwos resume". Nothing of theirs is refused or lost. What an effect has begun goes on to
its end, and limits of time go on too. An agent stays paused when the kernel is started
again. How many processes were not paused before is printed.

Exit status: 4 there never was such a process.`,
		Example: `  pwos pause 7
  pwos pause --all`,
	})
}

func newResume(a *app) *cobra.Command {
	return pausing(a, schema.ProcessResume.Type, &cobra.Command{
		Use:   "resume PID",
		Short: "have agents go on that were paused",
		Long: `resume has a process with all its descendants go on, or with --all all agents, where
"pwos pause" has stopped them: first what they had called, in its order. How many processes
were paused before is printed.`,
		Example: `  pwos resume 7
  pwos resume --all`,
	})
}

// pausing completes the command of a syscall that takes a PID, or all.
func pausing(a *app, typ string, cmd *cobra.Command) *cobra.Command {
	all := cmd.Flags().Bool("all", false, "all agents")
	cmd.Args = arguments(cobra.MaximumNArgs(1))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := &schema.PauseInput{All: *all}
		if len(args) == 1 {
			pid, err := pidOf(args[0], 1)
			if err != nil {
				return usage(cmd, err)
			}
			in.TargetPID = &pid
		}
		if *all == (in.TargetPID != nil) {
			return usage(cmd, errors.New("name one PID, or --all"))
		}
		return a.show(cmd.Context(), typ, in)
	}
	return cmd
}

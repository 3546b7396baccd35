package main

import (
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/schema"
)

func newResume(a *app) *cobra.Command {
	return pausing(a, schema.ProcessResume.Type, &cobra.Command{
		Use:   "resume AGENT",
		Short: "resume paused agents",
		Long: `resume lets a process with all its descendants, or all agents with --all, continue after
"pwos pause": first the calls that waited, in their order. It prints how many processes
it resumed.`,
		Example: `  pwos resume planner
  pwos resume --all`,
	})
}

package main

import (
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/schema"
)

func newCapRevoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke PID",
		Short: "take a process's capability away",
		Long: `revoke takes away all that a process was granted. No call that starts after revoke
has returned gets through. What the process holds of resources stays with it until
it is released. That it had nothing to take away is no error: see "revoked".`,
		Example: `  pwos cap revoke 7`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			pid, err := pidOf(args[0], 1)
			if err != nil {
				return usage(cmd, err)
			}
			return a.show(cmd.Context(), schema.CapabilityRevoke.Type, &schema.RevokeInput{PID: pid})
		},
	}
}

package main

import (
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/schema"
)

func newPolicyReload(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "have the kernel read the rules again",
		Long: `reload has the running kernel read the files of its policy again: it takes all of them,
or none where one is not valid, and says which line that is. SIGHUP does the same.`,
		Example: `  pwos policy reload`,
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.show(cmd.Context(), schema.PolicyReload.Type, &schema.PolicyReloadInput{})
		},
	}
}

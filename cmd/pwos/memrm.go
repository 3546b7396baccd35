package main

import (
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/schema"
)

func newMemRm(a *app) *cobra.Command {
	var as numberFlag
	cmd := &cobra.Command{
		Use:   "rm KEY",
		Short: "remove a key with its value",
		Long: `rm removes a key with its value.

Exit status: 3 denied, or the key is read-only, 4 there is no such key.`,
		Example: `  pwos mem rm notes/1
  pwos mem ls notes/ --raw | xargs -d '\n' -n 1 pwos mem rm`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := &schema.MemoryDeleteInput{Key: args[0]}
			var err error
			if in.PID, err = as.given(cmd, "as", 0); err != nil {
				return usage(cmd, err)
			}
			return a.show(cmd.Context(), schema.MemoryDelete.Type, in)
		},
	}
	as.add(cmd, "as", asHelp)
	return cmd
}

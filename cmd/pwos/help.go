package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// newHelp is in place of cobra's, which takes any word for a verb and ends well.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB...]",
		Short: "say how a verb is used",
		Long:  "help says how a verb is used: \"pwos help mem set\" is \"pwos mem set --help\".",
		Example: `  pwos help
  pwos help mem set`,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usage(cmd.Root(), fmt.Errorf("%q is no verb of pwos", strings.Join(args, " ")))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

package main

import (
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
)

// newHelp returns the help command. Unlike cobra's, it treats an unknown verb as a usage error.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "show how a verb is used",
		Long:  `help shows how a verb is used, like --help after the verb. It needs no kernel.`,
		Example: `  pwos help
  pwos help cap grant`,
		ValidArgsFunction: completeVerb,
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 && verb.HasAvailableSubCommands() {
				if verb == nil {
					verb, rest = cmd.Root(), args
				}
				return cli.Usage(verb, cli.UnknownCommand(verb, rest[0]))
			}
			verb.InitDefaultHelpFlag()
			verb.InitDefaultVersionFlag()
			return verb.Help()
		},
	}
}

// completeVerb completes the names of verbs.
func completeVerb(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	above, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var verbs []cobra.Completion
	for _, verb := range above.Commands() {
		if verb.IsAvailableCommand() {
			verbs = append(verbs, cobra.CompletionWithDesc(verb.Name(), verb.Short))
		}
	}
	return verbs, cobra.ShellCompDirectiveNoFileComp
}

package main

import (
	"github.com/spf13/cobra"
)

// newHelp is cobra's help, but that what is no verb is wrong usage, as it is without help before it.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "show how a verb is used",
		Long:  `help shows how a verb is used, as --help behind it does. It needs no kernel.`,
		Example: `  pwos help
  pwos help cap grant`,
		ValidArgsFunction: completeVerb,
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 && verb.HasAvailableSubCommands() {
				if verb == nil {
					verb, rest = cmd.Root(), args
				}
				return usage(verb, unknownCommand(verb, rest[0]))
			}
			verb.InitDefaultHelpFlag()
			verb.InitDefaultVersionFlag()
			return verb.Help()
		},
	}
}

// completeVerb completes the verbs below those that are there.
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

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
)

func newCompletion() *cobra.Command {
	scripts := map[string]func(root *cobra.Command, w io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) },
		"zsh":        func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
	}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "print a completion script for bash, fish, powershell or zsh",
		Long: `completion prints the script that lets a shell complete verbs, flags and message
types. It needs no kernel.`,
		Example: `  source <(pwos completion bash)
  pwos completion zsh > "${fpath[1]}/_pwos"
  pwos completion fish > ~/.config/fish/completions/pwos.fish`,
		Args:      cli.Arguments(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: []string{"bash", "fish", "powershell", "zsh"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := scripts[args[0]](cmd.Root(), cmd.OutOrStdout()); err != nil {
				return fmt.Errorf("write completion script: %w", err)
			}
			return nil
		},
	}
}

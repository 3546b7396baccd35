package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
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
types, and of a running kernel agents and their steps (claude:12). It starts none.`,
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

// completionTime bounds what a completion asks a kernel: somebody waits at a prompt.
const completionTime = 2 * time.Second

// completeSteps completes the first argument of a verb: agents that have steps, and behind a name and a colon its steps. A kernel that does not
// run is not started. rest is what the shell does with other arguments.
func completeSteps(a *app, rest cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, text string) (list []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, rest
		}
		name, _, named := strings.Cut(text, ":")
		in := new(schema.StepListInput)
		if named {
			in.Agent = &name
		}
		var out schema.StepListOutput
		err := a.With(cmd.Context(), completionTime, a.DialRunning, func(ctx context.Context, c *client.Client) (err error) {
			if !named { // older ones may be of other agents
				out, err = allSteps(ctx, c, *in)
			} else {
				out, err = cli.InvokeAs(ctx, c, schema.StepList, in)
			}
			return err
		})
		if err != nil {
			cobra.CompDebugln(err.Error(), false) // what is typed is shown nothing but completions
			return nil, rest
		}
		seen := make(map[string]bool)
		for i := range slices.Backward(out.Steps) {
			s := &out.Steps[i]
			word, says := s.Agent, "agent"
			if named {
				word, says = view.StepName(s.Agent, s.Step), s.Tool
				if files := s.Files.Items; len(files) > 0 {
					says += ", " + view.Escaped(files[0].Path)
				}
			}
			if !seen[word] && strings.HasPrefix(word, text) {
				seen[word] = true
				list = append(list, cobra.CompletionWithDesc(word, says))
			}
		}
		return list, rest | cobra.ShellCompDirectiveKeepOrder
	}
}

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door"
	"github.com/promptware-os/pwos/door/hookrun"
	"github.com/promptware-os/pwos/door/preset"
)

func newHookRun(a *app) *cobra.Command {
	run := hookrun.Run{Agent: door.Agent{Via: "hook"}, Dial: a.DialRunning, Out: a.Stdout, Say: a.Say}
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "answer a host's question, on stdin",
		Long: `A host with the hook starts run before each use of a tool. run reads the host's question
from stdin, and asks the kernel. If the tool is granted, it prints nothing, and the host
continues as without a hook. Otherwise, and if the kernel cannot be reached within 10 s,
does not answer within 55 s (the use may wait for an approval), or sends an invalid
answer, it prints the reason to stderr and exits with 2, which denies the use.

A use that is granted begins a step, which ends when the host tells that the tool has
ended. An event that tells something denies nothing: exit status 0. If programs were refused
meanwhile, it prints why, as additionalContext, which the model gets with the tool's result.

Hosts start "pwos-front hook run" where that is installed beside pwos: the same, and a small
program, which starts faster.`,
		Example: `  pwos hook run claude --as claude < question.json`,
		Args:    cli.Arguments(cobra.ExactArgs(1)), ValidArgs: preset.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := run.Answer(cmd.Context(), args[0], a.Stdin); err != nil {
				fmt.Fprintf(a.Stderr, "pwos: %s\n", err)
				_, _ = a.Stdout.Write(hookrun.Denial(args[0], err)) // the status denies too
				return cli.ExitStatus(hookrun.DenyStatus)
			}
			return nil
		},
	}
	addAgent(cmd, &run.Agent)
	cmd.Flags().Var((*cli.SpanFlag)(&run.Wait), "wait", "how long a use may wait for the answer, also of a person, if the host waits longer (default 55s)")
	cmd.Flags().BoolVar(&run.Tell, "tell", false, "the host only tells: a question that cannot be read denies nothing")
	return cmd
}

// addAgent adds the flags that select the process to act as.
func addAgent(cmd *cobra.Command, agent *door.Agent) {
	cmd.Flags().StringVar(&agent.Name, "as", "", "name of the process to act as")
	cmd.Flags().StringSliceVar(&agent.Allow, "allow", nil, "what a new process may call, as in cap grant, separated by commas; may be repeated")
}

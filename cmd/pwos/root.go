package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// root is the command that all verbs hang below.
type root struct{ *cobra.Command }

func newRoot(a *app) root {
	cmd := &cobra.Command{
		Use:   "pwos",
		Short: "talk to a kernel for AI agents",
		Long: `pwos talks to the kernel: each line of JSON that it is given is one message, each
answer is one line. Where no kernel runs yet, it starts one.

With piped input and no verb it streams: stdin to the kernel, answers to stdout.
At a terminal and with no verb it shows where the kernel is and what to try next.

Exit status: 0 all well, 1 an error message was seen, 2 wrong usage, 3 denied or not
let in, 4 not found, 5 quota exceeded, 6 no kernel could be reached or started, 7 timed
out, 8 in conflict with what is there, 9 waits for approval, 10 the journal or a sealed
value is not what was written, 130 interrupted. "pwos run" exits as the program that it ran.`,
		Example: `  echo '{"kind":"query","type":"Syscall.Ping","data":{"payload":1},"metadata":{"id":"m1","timestamp":0}}' | pwos
  pwos call Syscall.Echo message=hello
  pwos describe
  pwos --mode=daemon        # run the kernel here, in the foreground`,
		Args:              noVerb,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			mode, err := cmd.Flags().GetString("mode")
			switch inline := mode == "inline"; {
			case err != nil:
				return err
			case a.stdinTerminal() && inline:
				return usage(cmd, errors.New("--mode=inline serves piped input"))
			case a.stdinTerminal():
				return a.home(cmd.Context())
			}
			if a.origin != "" {
				return usage(cmd, errors.New("--origin goes with a verb: a message of a stream names its own, in metadata.origin"))
			}
			return a.stream(cmd.Context(), mode == "inline")
		},
	}
	flags := cmd.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print JSON at a terminal too")
	flags.StringVar(&a.runtimeDir, "runtime-dir", "", "the kernel's runtime directory (default: $PWOS_RUNTIME_DIR and so on)")
	flags.Var((*spanFlag)(&a.timeout), "timeout", "give up after this long, such as 500ms or 2m (default 1m; streams: never)")
	flags.BoolVar(&a.noSpawn, "no-spawn", false, "do not start a kernel where none runs")
	flags.StringVar(&a.identity, "identity", "", "the SSH key to show the kernel: a private key, or a public one that the ssh-agent holds (default: $PWOS_IDENTITY, or any)")
	flags.StringVar(&a.origin, "origin", "", "whose stored things the operator's calls are about: an address, or a name (default: the kernel's origin)")
	cmd.Flags().String("mode", "client", "daemon: be the kernel, with pwosd's flags; inline: serve piped input without a daemon")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, flagError(err)) })
	cmd.Version = version()
	cmd.SetVersionTemplate("pwos {{.Version}}\n")
	cmd.SetIn(a.stdin)
	cmd.SetOut(a.stdout)
	cmd.SetErr(a.stderr)
	cmd.AddCommand(
		newCall(a), newDescribe(a), newStatus(a), newShutdown(a), newVersion(a), newDemo(a), newBench(a), newCompletion(),
		newRun(a), newLogs(a), newTop(a), newCap(a), newPs(a), newSpawn(a), newKill(a), newSend(a), newRecv(a), newMem(a),
		newSyscall(a), newSeal(a), newUnseal(a), newAudit(a), newAuth(a), newRestore(a), newMCP(a), newHook(a), newPolicy(a), newSDK(a),
		newApprovals(a), newApprove(a), newRefuse(a), newBudget(a),
	)
	cmd.SetHelpCommand(newHelp())
	return root{cmd}
}

// run carries out args.
func (r root) run(ctx context.Context, args []string) error {
	r.SetArgs(args)
	return r.ExecuteContext(ctx)
}

// noVerb refuses what is no verb: cobra comes here only if none of that name exists.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(cmd, unknownCommand(cmd, args[0]))
	}
	if mode, err := cmd.Flags().GetString("mode"); err != nil || mode != "client" && mode != "inline" {
		return usage(cmd, fmt.Errorf("--mode is client, daemon or inline, not %q", mode))
	}
	return nil
}

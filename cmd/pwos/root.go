package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/internal/version"
)

// newRoot returns the root command with all verbs.
func newRoot(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pwos",
		Short: "talk to a kernel for AI agents",
		Long: `pwos talks to the kernel: each line of JSON is one message, and each
answer is one line. It starts a kernel if none runs.

With piped input and no verb it streams: stdin to the kernel, answers to stdout.
At a terminal and with no verb, it shows where the kernel is and what to try next.

Exit status: 0 success, 1 an error, 2 wrong usage, 3 denied or not
admitted, 4 not found, 5 quota exceeded, 6 no kernel, or not the other one that was asked,
could be reached or started: nothing was done, 7 timed out, or it is not known whether it was
done, 8 conflict with the present state, 9 waits for approval, 10 the journal or a sealed
value is damaged or altered, 130 interrupted. "pwos describe --errors" has that of each error.
"pwos run" exits with the status of its program.`,
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
			case inline && a.Kernel != "":
				return cli.Usage(cmd, errors.New("--mode=inline is a kernel of its own: leave --kernel out"))
			case a.StdinTerminal() && inline:
				return cli.Usage(cmd, errors.New("--mode=inline serves piped input"))
			case a.StdinTerminal():
				return a.home(cmd.Context())
			}
			if a.Origin != "" {
				return cli.Usage(cmd, errors.New("--origin needs a verb: each message of a stream names its origin in metadata.origin"))
			}
			return a.stream(cmd.Context(), mode == "inline")
		},
	}
	flags := cmd.PersistentFlags()
	flags.BoolVar(&a.JSON, "json", false, "print JSON at a terminal too")
	flags.StringVar(&a.RuntimeDir, "runtime-dir", "", "the kernel's runtime directory (default: $PWOS_RUNTIME_DIR and so on)")
	flags.Var((*cli.SpanFlag)(&a.Timeout), "timeout", "give up after this long, such as 500ms or 2m (default 1m; streams: never)")
	flags.BoolVar(&a.NoSpawn, "no-spawn", false, "do not start a kernel if none runs")
	flags.StringVar(&a.Identity, "identity", "", "the SSH key to show the kernel: a private key, or a public one that the ssh-agent holds (default: $PWOS_IDENTITY, or any)")
	flags.StringVar(&a.Origin, "origin", "", "whose stored things the operator's calls are about: an address, or a name (default: the kernel's origin)")
	flags.Var(&a.Kernel, "kernel", "connect to the kernel at tls://HOST:PORT, on another machine (default: this machine's)")
	cmd.PersistentPreRunE = a.reaches
	cmd.Flags().String("mode", "client", "daemon: be the kernel, with pwosd's flags; inline: serve piped input without a daemon")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return cli.Usage(cmd, cli.FlagError(cmd, err)) })
	cmd.Version = version.Build()
	cmd.SetVersionTemplate("pwos {{.Version}}\n")
	cmd.SetIn(a.Stdin)
	cmd.SetOut(a.Stdout)
	cmd.SetErr(a.Stderr)
	cmd.SetHelpCommand(newHelp())
	cmd.SetHelpCommandGroupID(operate)
	for _, subject := range verbs(a) {
		cmd.AddGroup(&cobra.Group{ID: subject.title, Title: subject.title + ":"})
		for _, verb := range subject.verbs {
			verb.GroupID = subject.title
			cmd.AddCommand(verb)
		}
	}
	return cmd
}

// subject is a group of verbs in the help.
type subject struct {
	title string
	verbs []*cobra.Command
}

const operate = "Operate the kernel"

// verbs returns all verbs, grouped by subject.
func verbs(a *app) []subject {
	return []subject{
		{"Run an agent host", append(newHosts(), newLogin(a), newLogout(a))},
		{"Run agents", []*cobra.Command{
			newRun(a), newSpawn(a), newKill(a), newPause(a), newResume(a), newPs(a), newTop(a), newLogs(a), newConsole(a), newHome(a), newProject(a), newGit(a), newProfile(a), newSettings(),
		}},
		{"See and undo changes", []*cobra.Command{
			newSteps(a), newDiff(a), newUndo(a), newApply(a), newDiscard(a),
		}},
		{"Make calls", []*cobra.Command{
			newCall(a), newSyscall(a), newDescribe(a), newSend(a), newRecv(a), newMem(a), newSeal(a), newUnseal(a),
		}},
		{"Look back", []*cobra.Command{
			newAudit(a), newStory(a), newWhy(a), newSearch(a), newGraph(a), newReplay(a),
		}},
		{"Bound and approve", []*cobra.Command{
			newCap(a), newPolicy(a), newBudget(a), newApprovals(a), newApprove(a), newRefuse(a),
		}},
		{"Connect others", []*cobra.Command{
			newCluster(a), newMCP(a), newHook(a), newSDK(a), newExport(a), newMetrics(a),
		}},
		{operate, []*cobra.Command{
			newStatus(a), newDoctor(a), newShutdown(a), newAuth(a), newBackup(a), newRestore(a), newDemo(a), newCompletion(), newVersion(a),
		}},
	}
}

// noVerb returns a usage error for an unknown verb or mode.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.Usage(cmd, cli.UnknownCommand(cmd, args[0]))
	}
	if mode, err := cmd.Flags().GetString("mode"); err != nil || mode != "client" && mode != "inline" {
		return cli.Usage(cmd, fmt.Errorf("--mode is client, daemon or inline, not %q", mode))
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/internal/version"
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
		{"Run agents", []*cobra.Command{
			newRun(a), newSpawn(a), newKill(a), newPause(a), newResume(a), newPs(a), newTop(a), newLogs(a), newConsole(a), newSnapshots(a), newSettings(),
		}},
		{"Make calls", []*cobra.Command{
			newCall(a), newSyscall(a), newDescribe(a), newSend(a), newRecv(a), newMem(a), newSeal(a), newUnseal(a),
		}},
		{"Look back", []*cobra.Command{
			newAudit(a), newStory(a), newWhy(a), newSearch(a), newGraph(a), newReplay(a), newUndo(a),
		}},
		{"Bound and approve", []*cobra.Command{
			newCap(a), newPolicy(a), newBudget(a), newApprovals(a), newApprove(a), newRefuse(a),
		}},
		{"Connect others", []*cobra.Command{
			newCluster(a), newMCP(a), newHook(a), newSDK(a), newExport(a), newMetrics(a),
		}},
		{operate, []*cobra.Command{
			newStatus(a), newShutdown(a), newAuth(a), newBackup(a), newRestore(a), newDemo(a), newCompletion(), newVersion(a),
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

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "show which pwos this is",
		Long:  "version shows which pwos this is, from what source, and what built it. It needs no kernel.",
		Example: `  pwos version
  pwos version --json`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.version() },
	}
}

func (a *app) version() error {
	build, revision := version.Build(), ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	o, t := view.Object(nil).Text("version", build), new(view.Table)
	t.Row("pwos", build)
	if revision != "" {
		o = o.Text("revision", revision)
		t.Row("revision", revision)
	}
	t.Row("built with", runtime.Version()+" for "+platform)
	return a.PrintEither(o.Text("go", runtime.Version()).Text("platform", platform).Close(), t)
}

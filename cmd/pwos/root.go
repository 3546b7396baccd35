package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/internal/version"
)

// newRoot returns the root command with the verb that a command line begins with, or with all if it begins with none, or with one that
// looks at the others: a command that runs one verb need not make the flags of all.
func newRoot(a *app, line ...string) *cobra.Command {
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
	list := subjects()
	only := lonely(list, line)
	for _, subject := range list {
		cmd.AddGroup(&cobra.Group{ID: subject.title, Title: subject.title + ":"})
		for _, verb := range subject.verbs {
			if only != "" && verb.name != only {
				continue
			}
			below := verb.command(a)
			below.GroupID = subject.title
			cmd.AddCommand(below)
		}
	}
	return cmd
}

// lonely returns the verb that a command line begins with, if it does not look at the others; "" if there is none.
func lonely(list []subject, line []string) string {
	if len(line) == 0 || line[0] == completionVerb {
		return ""
	}
	for _, subject := range list {
		if slices.ContainsFunc(subject.verbs, func(v verb) bool { return v.name == line[0] }) {
			return line[0]
		}
	}
	return ""
}

// subject is a group of verbs in the help.
type subject struct {
	title string
	verbs []verb
}

// verb is a verb of the command line.
type verb struct {
	name    string
	command func(*app) *cobra.Command
}

const operate = "Operate the kernel"

// completionVerb prints a script that has all verbs.
const completionVerb = "completion"

// subjects returns all verbs, grouped by subject.
func subjects() []subject {
	return []subject{
		{"Run an agent host", append(hostTopics(), verb{"acp", newACP}, verb{"login", newLogin}, verb{"logout", newLogout})},
		{"Run agents", []verb{
			{"run", newRun},
			{"spawn", newSpawn},
			{"kill", newKill},
			{"pause", newPause},
			{"resume", newResume},
			{"ps", newPs},
			{"top", newTop},
			{"logs", newLogs},
			{"console", newConsole},
			{"home", newHome},
			{"project", newProject},
			{"git", newGit},
			{"profile", newProfile},
			{"settings", func(*app) *cobra.Command { return newSettings() }},
		}},
		{"See and undo changes", []verb{
			{"steps", newSteps}, {"diff", newDiff}, {"undo", newUndo}, {"apply", newApply}, {"discard", newDiscard},
		}},
		{"Make calls", []verb{
			{"call", newCall},
			{"syscall", newSyscall},
			{"describe", newDescribe},
			{"send", newSend},
			{"recv", newRecv},
			{"mem", newMem},
			{"seal", newSeal},
			{"unseal", newUnseal},
		}},
		{"Look back", []verb{
			{"audit", newAudit}, {"story", newStory}, {"why", newWhy}, {"search", newSearch}, {"graph", newGraph}, {"replay", newReplay},
		}},
		{"Bound and approve", []verb{
			{"cap", newCap},
			{"policy", newPolicy},
			{"budget", newBudget},
			{"approvals", newApprovals},
			{"approve", newApprove},
			{"refuse", newRefuse},
		}},
		{"Connect others", []verb{
			{"cluster", newCluster}, {"mcp", newMCP}, {"hook", newHook}, {"sdk", newSDK}, {"export", newExport}, {"metrics", newMetrics},
		}},
		{operate, []verb{
			{"status", newStatus},
			{"doctor", newDoctor},
			{"shutdown", newShutdown},
			{"auth", newAuth},
			{"backup", newBackup},
			{"restore", newRestore},
			{"demo", newDemo},
			{completionVerb, func(*app) *cobra.Command { return newCompletion() }},
			{"version", newVersion},
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

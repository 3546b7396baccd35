package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
)

// runFlags are the flags of `pwos run`.
type runFlags struct {
	name, restart, channel, dir, home  string
	preset, profile                    string
	allow, quotas, limits, env, budget []string
	http                               httpFlags
	ttl                                time.Duration
	ownDir, detach, learn, tty         bool
	confined                           confineFlags
}

func newRun(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] -- PROGRAM [ARGS...]",
		Short: "run a program as an agent",
		Long: `run has the kernel start a program as an agent. Its standard input and output are its
channel to the kernel, a line of JSON a message; what it writes to standard error is
shown here. It may do what --allow says and nothing else. --tty runs a program that
knows nothing of that: it has this terminal, with job control, and the channel is
descriptor 3. What it prints then reaches the terminal as it is, control sequences too.

In the foreground, run ends when the agent does, with its exit status, and says on
stderr how it ended; 128+N means that signal N ended it, 127 that it could not be
started. Ctrl-C takes the agent down with all that it started, and run exits with 130
once they are gone; with --tty it is the program's. With -d run prints the PID and
leaves the agent running: see "pwos ps", "pwos logs", "pwos kill".

PROGRAM is looked for in the PATH of this shell, and works in the current directory,
the one place where the sandbox lets it write; where the kernel's own things lie below
that, in a new directory of its own instead. It does not see this shell's variables:
name with --env those that it needs. They are in the journal, so name no secrets. HOME
is its working directory, or that of --home.

Claude Code and Codex are known by their names, claude and codex, or by --preset: they get
a home of their own that stays, hidden from all other agents (--name says which), or the
one of --home; their tools ask the kernel first, and the kernel's are among them; their
own sandbox is off. With --allow Upstream:anthropic or Upstream:openai the kernel holds the
key. See docs/doors.md.

--profile gives many of these flags a name: reader may read its directory and nothing
more, worker may also write it and use memory and messages, coder is for a coding agent.
Flags that are given beside it take the place of what it says. See docs/profiles.md.

Without --allow it is granted the default: the ten syscalls of the capability model,
Ipc.Receive, and 200 units of each resource, with Http.Fetch where --host is given. A
quota bounds what is held at once; it is not used up. --learn grants everything but
the opening of secrets, for which --allow Crypto.Open and --http-open have to be given,
and prints afterwards the smallest grant that would have done, on stdout, as a command
line.`,
		Example: `  pwos run -- ./agent.sh
  pwos run --allow 'Memory.*,Ipc.Receive' --quota gpu=2 --ttl 5m -- python3 agent.py
  pwos run -d --name pong --restart on-failure --limit memory_bytes=256M -- ./pong
  pwos run --allow Http.Fetch --host api.example.com -- ./agent.sh
  pwos run --budget calls=500,fetches=100,usd=2 -- ./agent.sh
  pwos run --learn -- ./agent.sh
  pwos run --tty --profile coder -- claude
  pwos run --tty -- bash
  pwos run --tty --allow 'Memory.*,Tool:claude/*,Upstream:anthropic' -- claude`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := a.options()
			if err != nil {
				return err
			}
			if options.RuntimeDir == "" {
				options.RuntimeDir = client.RuntimeDir()
			}
			if f.tty && (!a.stdinTerminal() || !a.stdoutTerminal()) {
				return usage(cmd, errors.New("--tty needs a terminal for stdin and stdout"))
			}
			given, err := a.applyProfile(cmd, &f)
			if err != nil {
				return err
			}
			job, err := f.job(cmd, args, options.RuntimeDir)
			if err != nil {
				return usage(cmd, err)
			}
			if job.under(given); job.moved != nil && placed(given) {
				return usage(cmd, job.moved)
			}
			if err := a.setUp(&f, job); err != nil {
				return err
			}
			if job.moved != nil {
				a.say("the agent works in a directory of its own, as with --own-dir: it may write where it works, and the kernel keeps its own things in %s, below %s",
					job.moved.Detail("place"), job.moved.Detail("dir"))
			}
			return a.run(cmd.Context(), job)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows PROGRAM is its own
	flags.StringVar(&f.name, "name", "", "name of the agent (default: that of the program)")
	flags.StringSliceVar(&f.allow, "allow", nil, "what it may call, as in cap grant, separated by commas; may be given again")
	flags.StringArrayVar(&f.quotas, "quota", nil, "most units that it may hold at once, as resource=amount; may be given again")
	f.http.add(cmd)
	flags.DurationVar(&f.ttl, "ttl", 0, "how long its grant holds, in ticks of a second, such as 5m (default: it does not expire)")
	flags.StringVar(&f.restart, "restart", "", "never, on-failure or always: after which ends it is started again (default never)")
	flags.StringVar(&f.channel, "channel", "", "stdio or fd3: where it speaks with the kernel (default stdio)")
	f.confined.add(flags)
	flags.StringArrayVar(&f.limits, "limit", nil, "cpu_seconds, wall_seconds, memory_bytes, open_files or processes, as name=number; may be given again")
	flags.StringSliceVar(&f.budget, "budget", nil, budgetUsage)
	flags.StringArrayVar(&f.env, "env", nil, "a variable, as NAME=value, or NAME for its value here; may be given again")
	flags.StringVar(&f.dir, "dir", "", "working directory, where it may write (default: the current one)")
	flags.BoolVar(&f.ownDir, "own-dir", false, "work in a new directory of its own instead")
	flags.StringVar(&f.home, "home", "", "its HOME (default: its working directory)")
	flags.StringVar(&f.preset, "preset", "", "claude, codex or none: what it is set up as (default: by the name of the program)")
	flags.StringVar(&f.profile, "profile", "", "reader, worker, coder, or one of profiles/*.toml beside the configuration: what it is granted, and how it is confined")
	flags.BoolVar(&f.tty, "tty", false, "give it this terminal; its channel is descriptor 3")
	flags.BoolVarP(&f.detach, "detach", "d", false, "print the PID, and leave it running")
	flags.BoolVar(&f.learn, "learn", false, "grant everything, and print what would have been enough")
	if err := cmd.RegisterFlagCompletionFunc("profile", completeProfile); err != nil {
		panic(err) // the flag is there
	}
	return cmd
}

package main

import (
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/profile"
	"github.com/promptware-os/pwos/schema/quote"
)

// runFlags are the flags of `pwos run`.
type runFlags struct {
	name, profile string
	line          profile.Line
	detach        bool
	tty, noTTY    bool
	learn         learnFlag
	explain       bool
	acp           bool // the host speaks with an editor: "pwos acp"
	ask           bool // and the editor asks its user the questions of the kernel
}

func newRun(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] -- PROGRAM [ARGS...]",
		Short: "run a program as an agent",
		Long: `run makes the kernel start a program as an agent, which may do only what --allow says. Its
standard input, output and error are those of run: pipes, files and sockets as they are, a
terminal as one of its own, which shows what it writes unchanged (--no-tty: none). Its channel
to the kernel is descriptor 3; --channel stdio is for programs that speak the protocol on
standard input and output, one line of JSON a message.

In the foreground, run passes signals on, and ends with the agent as that ends: with its exit
status, or by its signal; 127 means that it could not be started, 126 that it is no program.
How it ended is printed to stderr at a terminal, or if a call was refused. What a rule asks about is
shown over the program's screen: Ctrl-] and then y, a or n answers it (docs/policy.md). With -d, run prints
the PID and leaves the agent running, and what it writes goes to its log: see "pwos ps",
"pwos logs", "pwos kill".

PROGRAM is looked for in the PATH of this shell, and works in the current directory, the only
place where the sandbox lets it write. If the kernel's own files are below that, it works in a
new directory instead. It does not see this shell's variables: name those that it needs with
--env. The journal has their values sealed; --env NAME=vault/KEY opens a secret at each start. PATH,
the locale, the terminal, the editor and CA certificates are those of this shell. HOME is a permanent
home of its name, which no agent of another name sees ("pwos home"), or --home.

Under a kernel of root, it runs as the owner of its directory, unless [agents] user or --user names
another user; --user root runs it as root. See docs/agents.md.

Agent hosts are recognized by their names, such as claude: "pwos help claude" lists them. Their
tools ask the kernel first, the syscalls are added to their tools, and their own sandbox is off.
--preset FILE declares another one, --preset none runs it as any program. See docs/doors.md.

--helper lets it start another agent host beside it with one "pwos run -d" of its own: that gets a
part of what it has itself, its directory and its budget, and answers by mail. See docs/doors.md.

--profile names settings: reader may read its directory and nothing more, worker may also write
it and use memory and messages, coder is for a coding agent, and what an agent host has without
--profile and --allow. Flags and --set override it. "pwos
help settings" lists all settings: quotas, limits, the network, restarts, and so on. See
docs/profiles.md. What it changes in its directory can be seen and undone: see "pwos steps". With
--review, it works on a copy, and its directory stays as it is until "pwos apply" takes that over.

Without --allow it is granted the default: the ten syscalls of the capability model,
Ipc.Receive, and 200 units of each resource, with Http.Fetch where --host is given. --learn
grants everything except opening secrets, which needs --allow Crypto.Open and --http-open, and
then prints the smallest sufficient grant to stdout, as a command line. --learn=NAME writes it
as a profile, with rules for the keys and hosts that were used.`,
		Example: `  pwos run -- make test
  pwos run --allow 'Memory.*,Ipc.Receive' --set grant.ttl=5m -- python3 agent.py
  pwos run -d --name pong --set program.restart=on-failure --set limits.memory_bytes=256M -- ./pong
  pwos run --allow Http.Fetch --host api.example.com -- ./agent.sh
  pwos run --budget calls=500,fetches=100,usd=2 -- ./agent.sh
  pwos run --name fix -- ./agent.sh && pwos diff fix && pwos undo fix
  pwos run --review --name fix -- ./agent.sh && pwos diff fix && pwos apply fix
  pwos run --learn=mine -- ./agent.sh && pwos policy reload && pwos run --profile mine -- ./agent.sh
  pwos run --profile worker -- claude
  pwos run --allow 'Memory.*,Tool:claude/*,Upstream:anthropic' -- claude`,
		Args: cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := a.prepared(cmd, &f, args)
			if job == nil || err != nil {
				return err
			}
			return a.run(cmd.Context(), job)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.tty, "tty", false, "give it a terminal of its own where this is one (the default)")
	flags.BoolVar(&f.noTTY, "no-tty", false, "give it none: no input from a terminal, and its output without control characters")
	flags.BoolVarP(&f.detach, "detach", "d", false, "print the PID, and leave it running")
	flags.Var(&f.learn, "learn", "grant everything, and print the grant that would have been enough; with =NAME, write it as a profile")
	flags.Lookup("learn").NoOptDefVal = "true"
	for _, name := range []string{"tty", "no-tty", "detach", "learn"} { // described above the flags
		flags.Lookup(name).Hidden = true
	}
	return cmd
}

// prepared returns the job of a command line, ready to be run; nil if that only explains.
func (a *app) prepared(cmd *cobra.Command, f *runFlags, args []string) (*job, error) {
	options, err := a.Options()
	if err != nil {
		return nil, err
	}
	if options.RuntimeDir == "" {
		options.RuntimeDir = client.RuntimeDir()
	}
	p, err := a.profileOf(cmd, f, args)
	if err != nil {
		return nil, cli.Usage(cmd, err)
	}
	job, err := f.job(cmd, p, args, options.RuntimeDir)
	if err != nil {
		return nil, cli.Usage(cmd, err)
	}
	job.withHelpers()
	if f.explain {
		return nil, a.explainRun(cmd.Context(), job)
	}
	if err := a.setUp(cmd.Context(), job); err != nil {
		return nil, err
	}
	if err := a.hold(cmd.Context(), job); err != nil {
		return nil, err
	}
	if job.moved != nil {
		a.Say("the agent works in a new directory, as with --own-dir: an agent may write where it works, and the kernel keeps its files in %s, below %s",
			job.moved.Detail("place"), job.moved.Detail("dir"))
	}
	if flag := p.Retired(); flag != "" {
		a.note("%s has no effect any more: the steps of every agent are kept; see %s", flag, quote.Command("pwos", "undo", "--help"))
	}
	for _, text := range []string{job.as.chosen, job.as.foreign} {
		if text != "" {
			a.note("%s", text)
		}
	}
	for _, name := range job.unpassed {
		a.note("%s is not passed: it is longer than %d bytes, or no text", name, longestVariable)
	}
	return job, a.greet(cmd.Context(), job)
}

// add adds the flags that every way of starting an agent in the foreground has.
func (f *runFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SetInterspersed(false) // flags after PROGRAM belong to the program
	addAllSettings(flags, &f.line)
	flags.StringVar(&f.name, "name", "", "name of the agent (default: that of the program)")
	flags.StringVar(&f.profile, "profile", "", "settings by name: reader, worker, coder, or one of profiles/*.toml beside the configuration")
	flags.BoolVar(&f.explain, "explain", false, "start nothing: say what it could read, write and reach, what is hidden, allowed, asked, undone and counted")
	for name, complete := range map[string]cobra.CompletionFunc{"profile": completeProfile, "set": completeSetting} {
		if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
			panic(err) // fails only for an unknown flag
		}
	}
}

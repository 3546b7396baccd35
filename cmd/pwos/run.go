package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// runFlags are the flags of `pwos run`.
type runFlags struct {
	name, restart, channel, dir, home  string
	preset, profile                    string
	allow, quotas, limits, env, budget []string
	http                               httpFlags
	ttl                                time.Duration
	ownDir, detach, tty                bool
	copied                             copyFlags
	learn                              learnFlag
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
line. --learn=NAME writes it as a profile, with rules for the keys and hosts that were
used.

--snapshot copies the working directory before the program starts, and "pwos undo --files
PID" restores it. Only the working directory is copied, not what --write names. Files
share their blocks with the copy where the file system can do that (btrfs, XFS); else
a directory above --snapshot-limit is not copied, and nothing is started.`,
		Example: `  pwos run -- ./agent.sh
  pwos run --allow 'Memory.*,Ipc.Receive' --quota gpu=2 --ttl 5m -- python3 agent.py
  pwos run -d --name pong --restart on-failure --limit memory_bytes=256M -- ./pong
  pwos run --allow Http.Fetch --host api.example.com -- ./agent.sh
  pwos run --budget calls=500,fetches=100,usd=2 -- ./agent.sh
  pwos run --snapshot -- ./agent.sh && pwos undo --files 7 --dry-run
  pwos run --learn -- ./agent.sh
  pwos run --learn=mine -- ./agent.sh && pwos policy reload && pwos run --profile mine -- ./agent.sh
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
			if job.under(given); job.moved != nil && (placed(given) || f.copied.on) {
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
	flags.SetInterspersed(false) // flags after PROGRAM are the program's
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
	f.copied.add(flags)
	flags.BoolVar(&f.tty, "tty", false, "give it this terminal; its channel is descriptor 3")
	flags.BoolVarP(&f.detach, "detach", "d", false, "print the PID, and leave it running")
	flags.Var(&f.learn, "learn", "grant everything, and print what would have been enough; with =NAME, write it as the profile of that name")
	flags.Lookup("learn").NoOptDefVal = "true"
	if err := cmd.RegisterFlagCompletionFunc("profile", completeProfile); err != nil {
		panic(err) // the flag is there
	}
	return cmd
}

// job is what `pwos run` does. Its grant is completed when the kernel's clock and pools are known.
type job struct {
	input schema.SpawnInput // grant fills in Capabilities

	allow   []string          // nil: the default grant
	http    *schema.HTTPGrant // nil: none
	quotas  map[string]float64
	ttl     time.Duration
	budget  *schema.BudgetGrant // nil: none
	detach  bool
	learn   learnFlag // allow and http are for comparison
	tty     bool
	unnamed bool         // its name comes from the program, with a number if the name is taken
	moved   *fault.Fault // why it works in a directory of its own although none was named

	sandbox *schema.Sandbox // by the flags, for a learned profile
	profile *config.Profile // that it is run under; nil: none

	copied *copyFlags // how the working directory is copied; nil: it is not

	kept []string // flags that a learned command line repeats
	args []string // the program as typed
}

// job reads the command line; its errors are wrong usage.
func (f *runFlags) job(cmd *cobra.Command, args []string, runtimeDir string) (*job, error) {
	j := &job{allow: f.allow, http: f.http.grant(), ttl: f.ttl, detach: f.detach, learn: f.learn, tty: f.tty, args: args, kept: keptFlags(cmd)}
	if err := f.contradiction(cmd); err != nil {
		return nil, err
	}
	var err error
	if j.quotas, err = quotasOf(f.quotas); err != nil {
		return nil, err
	}
	if j.budget, err = budgetOf(f.budget); err != nil {
		return nil, err
	}
	program := &j.input.Program
	if program.Env, err = envOf(f.env, os.LookupEnv); err != nil {
		return nil, err
	}
	if err := f.surroundings(program); err != nil {
		return nil, err
	}
	if program.Limits, err = limitsOf(f.limits); err != nil {
		return nil, err
	}
	if f.copied.on {
		j.copied = &f.copied
	} else if flag := f.copied.alone(cmd); flag != "" {
		return nil, fmt.Errorf("--%s says how --snapshot copies: give that too", flag)
	}
	program.Restart = textGiven(cmd, "restart", f.restart)
	program.Channel = textGiven(cmd, "channel", f.channel)
	if program.Sandbox, err = f.confined.sandbox(cmd); err != nil {
		return nil, err
	}
	if s := program.Sandbox; s != nil {
		as := *s
		j.sandbox = &as
	}
	if name := f.learn.name; name != "" {
		if err := free(name); err != nil {
			return nil, err
		}
	}
	if !f.ownDir {
		state, err := stateDir()
		if err != nil {
			return nil, err
		}
		// Without --dir another directory will do; a named one must be used.
		switch dir, err := workDir(f.dir, state, runtimeDir); {
		case err == nil:
			program.Cwd = &dir
		case f.dir != "" || !errors.As(err, &j.moved) || j.moved.ID != fault.PlaceInside:
			return nil, err
		}
	}
	if program.Command, err = commandOf(args); err != nil {
		return nil, err
	}
	j.input.ChildAgentID = f.name
	if j.unnamed = f.name == ""; j.unnamed {
		j.input.ChildAgentID = filepath.Base(args[0])
	}
	return j, nil
}

// surroundings adds --home to the environment, and the terminal's type with --tty.
func (f *runFlags) surroundings(program *schema.Program) error {
	if program.Env == nil {
		program.Env = make(map[string]string)
	}
	if f.home != "" {
		home, err := filepath.Abs(f.home)
		if err != nil {
			return fmt.Errorf("find home directory: %w", err)
		}
		if info, err := os.Stat(home); err != nil {
			return fmt.Errorf("find home directory: %w", err)
		} else if !info.IsDir() {
			return fmt.Errorf("--home %s is not a directory", home)
		}
		program.Env["HOME"] = home
	}
	if _, given := program.Env["TERM"]; f.tty && !given {
		program.Env["TERM"] = os.Getenv("TERM")
	}
	if len(program.Env) == 0 {
		program.Env = nil
	}
	return nil
}

// contradiction says which flags are invalid, or exclude each other.
func (f *runFlags) contradiction(cmd *cobra.Command) error {
	for _, flag := range []struct {
		name, value string
		values      []string
	}{
		{"restart", f.restart, []string{"never", "on-failure", "always"}},
		{"channel", f.channel, []string{"stdio", "fd3"}},
		{"preset", f.preset, presetNames()},
		{"sandbox", f.confined.level, []string{"default", "strict", "off"}},
		{"net", f.confined.net, []string{"none", "kernel", "open"}},
	} {
		if cmd.Flags().Changed(flag.name) && !slices.Contains(flag.values, flag.value) {
			return fmt.Errorf("--%s is one of %s, not %q", flag.name, strings.Join(flag.values, ", "), flag.value)
		}
	}
	switch {
	case f.learn.on && f.detach:
		return errors.New("--learn has to see the end of the program: it does not go with -d")
	case f.copied.on && f.ownDir:
		return errors.New("--snapshot copies a directory that is there: it does not go with --own-dir")
	case f.dir != "" && f.ownDir:
		return errors.New("--dir and --own-dir are two answers to one question")
	case cmd.Flags().Changed("ttl") && f.ttl < time.Second:
		return fmt.Errorf("--ttl is at least 1s, not %v", f.ttl)
	case f.tty && f.detach:
		return errors.New("--tty connects the program to this terminal: it does not go with -d")
	case f.tty && f.channel == "stdio":
		return errors.New("--tty takes standard input and output: the channel is fd3 then")
	case f.tty && f.restart != "" && f.restart != "never":
		return errors.New("--tty is for one run: it does not go with --restart " + f.restart)
	case f.learn.on && (f.quotas != nil || f.ttl != 0):
		return errors.New("--learn grants everything: --quota and --ttl do not go with it; --allow and --host say what to compare with")
	}
	return nil
}

// keptFlags are the flags that say how the program runs, as given.
func keptFlags(cmd *cobra.Command) []string {
	var kept []string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch list, many := flag.Value.(pflag.SliceValue); {
		case slices.Contains([]string{"allow", "quota", "ttl", "learn", "host", "http-plain", "http-open", "profile"}, flag.Name):
		case cmd.InheritedFlags().Lookup(flag.Name) != nil && flag.Name != "runtime-dir" && flag.Name != "identity":
		case many:
			for _, value := range list.GetSlice() {
				kept = append(kept, "--"+flag.Name+"="+value)
			}
		case flag.Value.Type() == "bool":
			kept = append(kept, "--"+flag.Name)
		default:
			kept = append(kept, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	return kept
}

// workDir makes a directory absolute; without one it is the current one. It refuses one that contains the kernel's
// own directories, where an agent could rewrite its own history.
func workDir(dir string, places ...string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find working directory: %w", err)
	}
	if info, err := os.Stat(abs); err != nil {
		return "", fmt.Errorf("find working directory: %w", err)
	} else if !info.IsDir() {
		return "", fmt.Errorf("--dir %s is not a directory", abs)
	}
	for _, place := range places {
		if inside(place, abs) {
			return "", fault.PlaceInside.New("the agent may write in its working directory, and the kernel keeps its own things in %s, below %s: name another with --dir, or use --own-dir",
				place, abs).With("place", place).With("dir", abs)
		}
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil { // the kernel accepts no links here
		return "", fmt.Errorf("find working directory: %w", err)
	}
	return abs, nil
}

// inside reports whether path is in dir. If path does not exist, its existing part counts.
func inside(path, dir string) bool {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			path = filepath.Join(real, strings.TrimPrefix(filepath.Clean(path), at))
			break
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// commandOf resolves the program for the kernel, whose PATH and directory differ from this shell's. A program that is
// not found is sent unchanged: the kernel may find it.
func commandOf(args []string) ([]string, error) {
	command := slices.Clone(args)
	if command[0] == "" {
		return nil, errors.New("PROGRAM must not be empty")
	}
	path, err := exec.LookPath(command[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		if !strings.Contains(command[0], "/") {
			return command, nil
		}
		path = command[0]
	}
	if command[0], err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("find program: %w", err)
	}
	return command, nil
}

// envOf parses --env: NAME=value, or the NAME of a variable that lookup knows.
func envOf(given []string, lookup func(string) (string, bool)) (map[string]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	env := make(map[string]string, len(given))
	for _, text := range given {
		name, value, found := strings.Cut(text, "=")
		if name == "" {
			return nil, fmt.Errorf("--env %q has no name", text)
		}
		if !found {
			if value, found = lookup(name); !found {
				return nil, fmt.Errorf("--env %s: it is not set here; give it a value with %s=value", name, name)
			}
		}
		env[name] = value
	}
	return env, nil
}

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
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
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
		Long: `run makes the kernel start a program as an agent. Its standard input and output are its
channel to the kernel, one line of JSON a message; its standard error is
shown here. It may do only what --allow says. --tty runs a program that
does not know the kernel: it gets this terminal, with job control, and its channel is
descriptor 3. Its output reaches the terminal unchanged, control sequences included.

In the foreground, run ends with the agent, with its exit status, and prints to
stderr how it ended; 128+N means that signal N ended it, 127 that it could not be
started. Ctrl-C ends the agent with all that it started, and run exits with 130
when they have ended; with --tty, Ctrl-C goes to the program. With -d, run prints the PID and
leaves the agent running: see "pwos ps", "pwos logs", "pwos kill".

PROGRAM is looked for in the PATH of this shell, and works in the current directory,
the only place where the sandbox lets it write. If the kernel's own files are below
that, it works in a new directory instead. It does not see this shell's variables:
name those that it needs with --env. The journal keeps them, so name no secrets. HOME
is its working directory, or the directory of --home.

Claude Code and Codex are recognized by their names, claude and codex, or by --preset.
They get a permanent home, hidden from all other agents (one for each --name), or the one
of --home. Their tools ask the kernel first, the syscalls are added to their tools, and
their own sandbox is off. With --allow Upstream:anthropic or Upstream:openai the kernel
holds the key. See docs/doors.md.

--profile sets many of these flags at once: reader may read its directory and nothing
more, worker may also write it and use memory and messages, coder is for a coding agent.
Flags on the command line override the profile. See docs/profiles.md.

Without --allow it is granted the default: the ten syscalls of the capability model,
Ipc.Receive, and 200 units of each resource, with Http.Fetch where --host is given. A
quota bounds what is held at once. --learn grants everything except
opening secrets, which needs --allow Crypto.Open and --http-open,
and then prints the smallest sufficient grant to stdout, as a command
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
		Args: cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := a.Options()
			if err != nil {
				return err
			}
			if options.RuntimeDir == "" {
				options.RuntimeDir = client.RuntimeDir()
			}
			if f.tty && (!a.StdinTerminal() || !a.StdoutTerminal()) {
				return cli.Usage(cmd, errors.New("--tty needs a terminal as stdin and stdout"))
			}
			given, err := a.applyProfile(cmd, &f)
			if err != nil {
				return err
			}
			job, err := f.job(cmd, args, options.RuntimeDir)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			if job.under(given); job.moved != nil && (placed(given) || f.copied.on) {
				return cli.Usage(cmd, job.moved)
			}
			if err := a.setUp(&f, job); err != nil {
				return err
			}
			if job.moved != nil {
				a.Say("the agent works in a new directory, as with --own-dir: an agent may write where it works, and the kernel keeps its files in %s, below %s",
					job.moved.Detail("place"), job.moved.Detail("dir"))
			}
			return a.run(cmd.Context(), job)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // flags after PROGRAM belong to the program
	flags.StringVar(&f.name, "name", "", "name of the agent (default: that of the program)")
	flags.StringSliceVar(&f.allow, "allow", nil, "what it may call, as in cap grant, separated by commas; may be repeated")
	flags.StringArrayVar(&f.quotas, "quota", nil, "most units that it may hold at once, as resource=amount; may be repeated")
	f.http.add(cmd)
	flags.DurationVar(&f.ttl, "ttl", 0, "how long its grant is valid, in ticks of a second, such as 5m (default: it does not expire)")
	flags.StringVar(&f.restart, "restart", "", "when to restart it: never, on-failure or always (default never)")
	flags.StringVar(&f.channel, "channel", "", "its channel to the kernel: stdio or fd3 (default stdio)")
	f.confined.add(flags)
	flags.StringArrayVar(&f.limits, "limit", nil, "cpu_seconds, wall_seconds, memory_bytes, open_files or processes, as name=number; may be repeated")
	flags.StringSliceVar(&f.budget, "budget", nil, budgetUsage)
	flags.StringArrayVar(&f.env, "env", nil, "a variable, as NAME=value, or NAME for its value here; may be repeated")
	flags.StringVar(&f.dir, "dir", "", "working directory, where it may write (default: the current one)")
	flags.BoolVar(&f.ownDir, "own-dir", false, "work in a new directory instead")
	flags.StringVar(&f.home, "home", "", "its HOME (default: its working directory)")
	flags.StringVar(&f.preset, "preset", "", "setup for a known program: claude, codex or none (default: by the name of the program)")
	flags.StringVar(&f.profile, "profile", "", "grant and sandbox by a profile: reader, worker, coder, or one of profiles/*.toml beside the configuration")
	f.copied.add(flags)
	flags.BoolVar(&f.tty, "tty", false, "give it this terminal; its channel is descriptor 3")
	flags.BoolVarP(&f.detach, "detach", "d", false, "print the PID, and leave it running")
	flags.Var(&f.learn, "learn", "grant everything, and print the grant that would have been enough; with =NAME, write it as a profile")
	flags.Lookup("learn").NoOptDefVal = "true"
	if err := cmd.RegisterFlagCompletionFunc("profile", completeProfile); err != nil {
		panic(err) // fails only for an unknown flag
	}
	return cmd
}

// job describes an agent that `pwos run` starts. Its grant is completed when the kernel's clock and resources are known.
type job struct {
	input schema.SpawnInput // Capabilities is set by spawn

	allow   []string          // nil: the default grant
	http    *schema.HTTPGrant // nil: none
	quotas  map[string]float64
	ttl     time.Duration
	budget  *schema.BudgetGrant // nil: none
	detach  bool
	learn   learnFlag // with it, allow and http are the grant to compare with
	tty     bool
	unnamed bool         // the name is the program's, with a number added if that is taken
	moved   *fault.Fault // why the program runs in a new directory instead of the current one; nil: it does not

	sandbox *schema.Sandbox // the sandbox of the flags, for a learned profile
	profile *config.Profile // the profile that the agent runs under; nil: none

	copied *copyFlags // how the working directory is copied; nil: it is not copied

	kept []string // flags that a learned command line repeats
	args []string // the program and its arguments as typed
}

// job returns the job that the command line describes. Its errors are usage errors.
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
	program.Restart = cli.TextGiven(cmd, "restart", f.restart)
	program.Channel = cli.TextGiven(cmd, "channel", f.channel)
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
		state, err := cli.StateDir()
		if err != nil {
			return nil, err
		}
		// A new directory may replace only the default working directory, not one that --dir names.
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
		j.input.ChildAgentID = schema.AgentName(filepath.Base(args[0]))
	}
	return j, nil
}

// surroundings sets HOME from --home, and TERM with --tty.
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

// contradiction returns an error if flags are invalid or exclude each other.
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
			return fmt.Errorf("--%s must be one of %s, not %q", flag.name, strings.Join(flag.values, ", "), flag.value)
		}
	}
	switch {
	case f.learn.on && f.detach:
		return errors.New("--learn must see the end of the program: leave out -d")
	case f.copied.on && f.ownDir:
		return errors.New("--snapshot copies an existing directory: leave out --own-dir")
	case f.dir != "" && f.ownDir:
		return errors.New("--dir and --own-dir exclude each other: give one of them")
	case cmd.Flags().Changed("ttl") && f.ttl < time.Second:
		return fmt.Errorf("--ttl must be at least 1s, not %v", f.ttl)
	case f.tty && f.detach:
		return errors.New("--tty connects the program to this terminal: leave out -d")
	case f.tty && f.channel == "stdio":
		return errors.New("--tty uses standard input and output: the channel must be fd3")
	case f.tty && f.restart != "" && f.restart != "never":
		return errors.New("--tty is for one run: it cannot be combined with --restart " + f.restart)
	case f.learn.on && (f.quotas != nil || f.ttl != 0):
		return errors.New("--learn grants everything: leave out --quota and --ttl; --allow and --host name the grant to compare with")
	}
	return nil
}

// keptFlags returns the given flags that do not describe the grant.
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

// workDir returns a directory as an absolute path without symbolic links; "" is the current one. It refuses a directory that contains
// one of places, where an agent could alter the kernel's files.
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
			return "", fault.PlaceInside.New("the agent may write in its working directory, and the kernel keeps its files in %s, below %s: name another directory with --dir, or use --own-dir",
				place, abs).With("place", place).With("dir", abs)
		}
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil { // the kernel accepts no symbolic link here
		return "", fmt.Errorf("find working directory: %w", err)
	}
	return abs, nil
}

// inside reports whether path is dir or below it. Symbolic links are resolved, also in the existing part of a path that does not exist.
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

// commandOf returns args with the program's absolute path, since the kernel's PATH and directory differ from this shell's. A name that
// is not found is returned unchanged: the kernel may find it.
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

// envOf parses --env: NAME=value, or NAME for the value that lookup returns.
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
				return nil, fmt.Errorf("--env %s: the variable is not set here; give it a value with %s=value", name, name)
			}
		}
		env[name] = value
	}
	return env, nil
}

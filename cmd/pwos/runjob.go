package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/cmd/pwos/internal/gitdirs"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/profile"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// job describes an agent that `pwos run` starts.
type job struct {
	input   schema.SpawnInput // Capabilities is set by spawn, which knows the kernel's clock and resources
	profile *profile.Profile  // the settings that it is made of
	sandbox *schema.Sandbox   // that of the settings, for a learned profile

	explain bool // it is not started
	detach  bool
	stdio   bool            // the program gets the standard input, output and error of this process
	noTTY   bool            // but no terminal
	acp     bool            // the host speaks with an editor
	asks    bool            // and the editor asks its user
	started func(pid int64) // is told of the agent, if it is not nil
	learn   learnFlag       // with it, the grant of the profile is the one to compare with
	unnamed bool            // the name is the program's, with a number added if that is taken
	moved   *fault.Fault    // why the program runs in a new directory instead of the current one; nil: it does not

	kept     []string         // flags that a learned command line repeats
	unboxed  []string         // the same without those of the sandbox, which a learned profile has
	args     []string         // the program and its arguments as typed
	unpassed []string         // variables of the caller that the kernel would not accept
	held     string           // files that are hidden without a question
	git      *gitdirs.Session // what it has of the repositories of its project; nil: none
	signing  string           // settings of git that sign
	as       runUser          // the user that it runs as
	logins   []*preset.Login  // of the environment, which it uses
	home     string           // the directory that the settings name as its home; "": the one that its name has
}

// job returns the job that the settings and the command line describe. Its errors are usage errors.
func (f *runFlags) job(cmd *cobra.Command, p *profile.Profile, args []string, runtimeDir string) (*job, error) {
	if err := f.contradiction(p); err != nil {
		return nil, err
	}
	j := &job{profile: p, explain: f.explain, detach: f.detach, learn: f.learn, noTTY: f.noTTY, acp: f.acp, asks: f.ask, args: args, kept: f.kept(cmd, "grant."), unboxed: f.kept(cmd, "grant.", "sandbox.")}
	here, err := hereIn(p)
	if err != nil {
		return nil, err
	}
	if j.input.Program, err = p.Program(here); err != nil {
		return nil, err
	}
	program := &j.input.Program
	umask := int64(syscall.Umask(0))
	syscall.Umask(int(umask)) // nothing is created meanwhile
	program.Umask = &umask
	if program.Channel == nil { // standard input and output are the program's own
		fd3 := "fd3"
		program.Channel = &fd3
	}
	j.stdio = canHandOver && !f.detach && *program.Channel != "stdio" && cmp.Or(p.Restart, "never") == "never"
	if j.acp && !j.stdio {
		return nil, errors.New("the editor speaks with the host by its standard input and output, which can be handed over on Linux, to a program that is not restarted and has no --channel stdio")
	}
	if j.home, err = namedHome(p, here); err != nil {
		return nil, err
	}
	j.unpassed = pass(program, withToolchains(os.Environ(), here.Home))
	if s := program.Sandbox; s != nil {
		as := *s
		j.sandbox = &as
	}
	if name := f.learn.name; name != "" {
		if err := free(name); err != nil {
			return nil, err
		}
	}
	if !p.OwnDir {
		state, err := cli.StateDir()
		if err != nil {
			return nil, err
		}
		// A new directory may replace only the default working directory, not one that is named, and none that the settings depend on.
		switch dir, err := workDir(here.Dir, state, runtimeDir); {
		case err == nil:
			program.Cwd = &dir
		case f.acp || p.Dir != "" || p.Placed() != "" || !errors.As(err, &j.moved) || j.moved.ID != fault.PlaceInside:
			return nil, err
		}
	}
	if !insideAgent() { // else it runs as its parent does
		if j.as, err = chooseUser(program, cmp.Or(j.home, program.Env["HOME"]), runtimeDir); err != nil {
			return nil, err
		}
	}
	readTools(program, here.Home)
	if program.Command, err = asTyped(args, program); err != nil {
		return nil, err
	}
	if p.Name != "" {
		intent := policy.ProfileIntent + p.Name
		j.input.Intent = &intent
	}
	if p.Review && program.Cwd == nil {
		return nil, fmt.Errorf("--review is for a directory that the agent works in, and %w", j.moved)
	}
	if insideAgent() {
		if err := j.asHelper(); err != nil {
			return nil, err
		}
	}
	j.unnamed = f.name == ""
	j.input.ChildAgentID = cmp.Or(f.name, schema.AgentName(filepath.Base(args[0])))
	return j, nil
}

// hereIn returns what the paths and variables of a profile refer to.
func hereIn(p *profile.Profile) (here profile.Here, err error) {
	here.Lookup = os.LookupEnv
	here.Home, _ = os.UserHomeDir() // only paths below ~/ need it
	if here.Dir, err = os.Getwd(); err != nil {
		return here, fmt.Errorf("find working directory: %w", err)
	}
	here.Dir, err = here.Path(p.Dir)
	return here, err
}

// contradiction returns an error if settings and flags exclude each other.
func (f *runFlags) contradiction(p *profile.Profile) error {
	switch {
	case f.learn.on && f.detach:
		return errors.New("--learn must see the end of the program: leave out -d")
	case p.Review && p.OwnDir:
		return errors.New("--review is for a directory that exists: leave out --own-dir")
	case p.Review && p.Level == "off":
		return errors.New("--review needs a sandbox, without which the directory itself can be written: leave out --sandbox off")
	case f.acp && p.OwnDir:
		return errors.New("an editor has its sessions in a project: leave out --own-dir, and name the project with --dir")
	case p.Dir != "" && p.OwnDir:
		return errors.New("--dir and --own-dir exclude each other: give one of them")
	case p.Placed() != "" && p.OwnDir:
		return fmt.Errorf("the path %s depends on the working directory: leave out --own-dir", p.Placed())
	case f.explain && (f.learn.on || f.detach):
		return errors.New("--explain starts nothing: leave out --learn and -d")
	case f.tty && f.noTTY:
		return errors.New("--tty and --no-tty exclude each other: give one of them")
	case f.tty && f.detach:
		return errors.New("--tty connects the program to this terminal: leave out -d")
	case f.tty && p.Channel == "stdio":
		return errors.New("--tty uses standard input and output: the channel must be fd3")
	case f.tty && p.Restart != "" && p.Restart != "never":
		return errors.New("--tty is for one run: it cannot be combined with --restart " + p.Restart)
	}
	return nil
}

// kept returns the flags of the command line, without those that learn, and those of settings whose keys begin with a prefix.
func (f *runFlags) kept(cmd *cobra.Command, without ...string) (kept []string) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch _, setting := flag.Value.(settingFlag); {
		case setting, flag.Name == "learn", flag.Name == "profile":
		case cmd.InheritedFlags().Lookup(flag.Name) != nil && flag.Name != "runtime-dir" && flag.Name != "identity":
		case flag.Value.Type() == "bool":
			kept = append(kept, "--"+flag.Name)
		default:
			kept = append(kept, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	return append(kept, f.line.Words(without...)...)
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

// asTyped returns args such that the kernel finds the program that this shell would: unchanged if it looks in the same places, so that the
// program sees its name as it was typed.
func asTyped(args []string, program *schema.Program) ([]string, error) {
	resolved, err := commandOf(args)
	here, hereErr := os.Getwd()
	here, realErr := filepath.EvalSymlinks(here)
	if errors.Join(err, hereErr, realErr) == nil && program.Cwd != nil && *program.Cwd == here && program.Env["PATH"] == os.Getenv("PATH") {
		return slices.Clone(args), nil
	}
	return resolved, err
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
	path = filepath.Join(lastingDir(filepath.Dir(path)), filepath.Base(path))
	if command[0], err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("find program: %w", err)
	}
	return command, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/hookrun"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/regular"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// setUp completes a job: with a home, and what a preset has for its program.
func (a *app) setUp(ctx context.Context, j *job) error {
	if j.profile.Sign {
		if err := j.sign(ctx); err != nil {
			return cli.Misuse("pwos run", err)
		}
	}
	host, err := hostOf(j.profile.Preset, j.args)
	if err != nil {
		return cli.Misuse("pwos run", err)
	}
	if host == nil {
		if j.home == "" && j.input.Program.Env["HOME"] != "" {
			if j.profile.Cache {
				return cli.Misuse("pwos run", errors.New("--cache is for a home that pwos gives: name one with --home, and not as the variable HOME"))
			}
			return nil // the settings name another, as a variable
		}
		_, err := j.giveHome(ctx, nil)
		return err
	}
	if option := reserved(host, j.args[1:]); option != "" {
		return cli.Misuse("pwos run", fmt.Errorf("%s would override a setting that %s needs in pwos run: import settings into its home with \"pwos home import\", or --preset none", option, host.Name))
	}
	if err := installed(host.Package, j.args[0]); err != nil {
		return err
	}
	if err := j.speaks(host); err != nil {
		return err
	}
	j.takeLogins(host)
	if err := a.countable(ctx, j, host); err != nil {
		return err
	}
	doors, err := a.doors(host.Name)
	if err != nil {
		return err
	}
	if helpers := j.input.Program.Env[helpersVariable]; helpers != "" {
		doors.Env = append(slices.Clip(doors.Env), [2]string{helpersVariable, helpers})
	}
	doors.Attended = j.asks || j.attended(a)
	along := new(brought)
	if user, err := os.UserHomeDir(); err == nil && j.as.other == nil { // links in the home of another user are not this user's
		if along, err = bring(host, user); err != nil {
			return cli.Misuse("pwos run", err)
		}
	}
	var start preset.Start
	home, err := j.giveHome(ctx, func(home string) (_ map[string]string, err error) {
		doors.Home, doors.Trusted, doors.Mail = home, trusted(j.input.Program.Cwd), !slices.ContainsFunc(hookrun.MailCalls(), j.lacks)
		if start, err = host.Start(doors); err == nil {
			err = j.adapt(host, &start, home)
			maps.Copy(start.Files, along.settings)
		}
		files := maps.Clone(along.files)
		maps.Copy(files, start.Files)
		return files, err
	}, append(along.programs, wrapper)...)
	if err != nil {
		return err
	}
	program := &j.input.Program
	a.hideSettings(program, host, doors.Trusted)
	if s := program.Sandbox; s.Named() != "off" {
		s.Read = append(s.Read, doors.Server[0], doors.Hook[0])
		for _, name := range slices.Concat(slices.Sorted(maps.Keys(start.Files)), along.names) { // it may only read them
			s.Read = append(s.Read, filepath.Join(home, name))
		}
	}
	env := start.Env
	if b := &j.profile.Budget; b.Tokens != nil || b.USD != nil {
		maps.Copy(env, host.Saves)
	}
	for _, name := range host.Passes {
		if value, set := os.LookupEnv(name); set && len(value) <= longestVariable && utf8.ValidString(value) {
			env[name] = value
		}
	}
	for _, one := range doors.Env { // for programs that the host starts; the doors have them in their own settings
		env[one[0]] = one[1]
	}
	maps.Copy(env, program.Env)
	env["HOME"] = home
	program.Env = env
	program.Command = slices.Concat(program.Command[:1], start.Args, program.Command[1:])
	script := j.script(host)
	if j.adapter(host) != "" { // which starts the host by it
		script = ""
	}
	program.Command = scripted(script, program.Command, j.attended(a))
	return nil
}

// hostOf returns the agent host that a program is, nil for any other program. given is the preset of the settings, "" if they name none.
func hostOf(given string, args []string) (*preset.Host, error) {
	switch {
	case given == "none":
		return nil, nil
	case given == "":
		return preset.Named(filepath.Base(args[0])), nil
	case strings.Contains(given, "/") || filepath.Ext(given) == ".toml":
		return readPreset(given)
	case preset.Named(given) != nil:
		return preset.Named(given), nil
	}
	err := fmt.Errorf("--preset takes %s, none, or a file such as ./own.toml, not %q", strings.Join(preset.Names(), ", "), given)
	if near := schema.Nearest(given, slices.Values(preset.Names())); near != "" {
		err = fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return nil, err
}

// installed returns an error if a program of an npm package, named as in a shell, is not in PATH.
func installed(of, program string) error {
	_, err := exec.LookPath(program)
	if strings.Contains(program, "/") || !errors.Is(err, exec.ErrNotFound) {
		return nil // the kernel says what is wrong with it
	}
	missing := fault.ProcessNotStarted.New("%s is not in PATH", program)
	if of == "" {
		return missing
	}
	return missing.WithFix("install it, with Node 24: %s", quote.Command("npm", "install", "-g", of))
}

// lacking returns a list with what it lacks of more.
func lacking(list, more []string) []string {
	for _, one := range more {
		if !slices.Contains(list, one) {
			list = append(slices.Clip(list), one)
		}
	}
	return list
}

// reserved returns an option of args that the user may not give; "" if there is none.
func reserved(host *preset.Host, args []string) string {
	for _, option := range host.Reserved {
		if slices.ContainsFunc(args, func(arg string) bool { return arg == option || strings.HasPrefix(arg, option+"=") }) {
			return option
		}
	}
	return ""
}

// lacks reports whether the settings do not grant a syscall.
func (j *job) lacks(typ string) bool {
	domain, _, _ := strings.Cut(typ, ".")
	return !slices.ContainsFunc(j.profile.Allow, func(pattern string) bool { return pattern == typ || pattern == domain+".*" || pattern == "*" })
}

// script returns what the host is started by where the kernel may have the key of its model; "" if it may not.
func (j *job) script(host *preset.Host) string {
	if !slices.ContainsFunc(host.Upstreams, func(u preset.Upstream) bool { return j.uses(u.Name) }) {
		return ""
	}
	return host.Keyed()
}

// jobControl is a shell script that runs a program as a job, as an interactive shell does. Otherwise
// Ctrl-Z could not stop the program, since the system stops no process whose parent is in another session. When the program stops, the
// script stops the session's leader, which terminal.control detects.
const jobControl = `set -m
"$@"
status=$?
while jobs %1 >/dev/null 2>&1; do
	kill -STOP $$
	fg %1 >/dev/null
	status=$?
done
exit $status`

// scripted returns the command that starts a program, in a shell if it needs a script.
func scripted(script string, argv []string, tty bool) []string {
	switch {
	case tty:
		script += jobControl
	case script == "":
		return argv
	default:
		script += `exec "$@"`
	}
	return append([]string{"/bin/sh", "-c", script, "pwos"}, argv...)
}

// trusted returns a working directory and the directories of its repositories, by which hosts remember what their user trusts.
func trusted(cwd *string) (dirs []string) {
	if cwd == nil {
		return nil
	}
	dirs = []string{*cwd}
	for at := *cwd; at != "/"; at = filepath.Dir(at) {
		switch info, err := os.Lstat(filepath.Join(at, ".git")); {
		case err != nil:
			continue
		case info.IsDir():
			dirs = append(dirs, at)
		default: // a linked worktree, of the repository that the file names
			text := gitFile(filepath.Join(at, ".git"))
			git, _, linked := strings.Cut(strings.TrimSpace(strings.TrimPrefix(text, "gitdir:")), "/.git/worktrees/")
			if dirs = append(dirs, at); linked {
				dirs = append(dirs, git)
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// gitFile returns what a file .git says, which an agent may have made; "" if it is none.
func gitFile(path string) string {
	file, _, err := regular.Open(path, os.O_RDONLY)
	if err != nil {
		return ""
	}
	const longest = 8 << 10
	text, err := io.ReadAll(io.LimitReader(file, longest))
	if errors.Join(err, file.Close()) != nil {
		return ""
	}
	return string(text)
}

// doors returns the doors for an agent of this kernel. They name no agent, since the kernel recognises the processes that it
// started.
func (a *app) doors(host string) (*preset.Doors, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self) // the kernel accepts no symbolic link here
	}
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	asked, err := hookProgram()
	if err != nil {
		return nil, err
	}
	env, err := a.kernelEnv()
	if err != nil {
		return nil, err
	}
	return &preset.Doors{
		Server: []string{self, "mcp", "serve", "--no-spawn"}, Hook: []string{asked, "hook", "run", host},
		Env: env[:1], // only the runtime directory: the other paths are hidden from the agent
	}, nil
}

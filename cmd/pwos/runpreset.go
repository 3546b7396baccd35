package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
)

// doors are the commands that connect a host to the kernel: its MCP server and its hook.
type doors struct {
	server mcpEntry
	hook   []string // it also gets the variables of server
	keyed  bool     // the kernel has the host's key
}

// setUp completes the job of a program that has a preset.
func (a *app) setUp(f *runFlags, j *job) error {
	host := cmp.Or(j.profile.Preset, filepath.Base(j.args[0]))
	known := hostNamed(host)
	if known == nil || known.preset == nil {
		return nil
	}
	p := known.preset
	if i := slices.IndexFunc(j.args[1:], func(arg string) bool { return p.own != "" && (arg == p.own || strings.HasPrefix(arg, p.own+"=")) }); i >= 0 {
		return cli.Misuse("pwos run", fmt.Errorf("%s would override a setting that %s needs in pwos run: use the settings in its home, or --preset none", p.own, host))
	}
	program := &j.input.Program
	if j.profile.Channel == "" { // the host uses standard input and output itself
		fd3 := "fd3"
		program.Channel = &fd3
	}
	home := ""
	if j.profile.Home != "" {
		home = program.Env["HOME"]
	}
	home, err := presetHome(home, cmp.Or(f.name, host))
	if err != nil {
		return err
	}
	settings, err := p.makeSettings(home)
	if err != nil {
		return err
	}
	d, err := a.doors(host)
	if err != nil {
		return err
	}
	if s := program.Sandbox; s.Named() != "off" {
		if s == nil {
			s = new(schema.Sandbox)
			program.Sandbox = s
		}
		s.Write = append(s.Write, home)
		s.Read = append(append(s.Read, d.server.command), settings...)
	}
	d.keyed = program.Sandbox.Network() == "kernel" && (slices.Contains(j.profile.Allow, "Upstream:"+p.upstream) || slices.Contains(j.profile.Allow, "Upstream:*"))
	env := maps.Clone(p.env)
	for _, one := range d.server.env { // for programs that the host starts; the doors have them in their own settings
		env[one[0]] = one[1]
	}
	maps.Copy(env, program.Env)
	env["HOME"] = home
	program.Env = env
	program.Command = p.started(program.Command, d, j.tty)
	return nil
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

// started returns the command that starts the program, in a shell if it needs a script.
func (p *preset) started(argv []string, d *doors, tty bool) []string {
	argv = p.command(argv, d)
	script := ""
	if d.keyed {
		script = p.keyed
	}
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

// doors returns the doors for an agent of this kernel. They name no agent, since the kernel recognises the processes that it
// started.
func (a *app) doors(host string) (*doors, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self) // the kernel accepts no symbolic link here
	}
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	env, err := a.kernelEnv()
	if err != nil {
		return nil, err
	}
	env = env[:1] // only the runtime directory: the other paths are hidden from the agent
	return &doors{
		server: mcpEntry{command: self, args: []string{"mcp", "serve", "--no-spawn"}, env: env},
		hook:   []string{self, "hook", "run", host},
	}, nil
}

// presetHome returns the host's home directory: the one that the settings name, or else a permanent one for a name in the state
// directory, which is hidden from other agents.
func presetHome(home, name string) (string, error) {
	if home == "" {
		if strings.HasPrefix(name, ".") || strings.Contains(name, "/") {
			return "", fmt.Errorf("%q cannot be the name of a home: choose another --name, or name a directory with --home", name)
		}
		state, err := cli.StateDir()
		if err != nil {
			return "", err
		}
		home = filepath.Join(state, "homes", name)
		if err := os.MkdirAll(home, 0o700); err != nil {
			return "", fmt.Errorf("make home: %w", err)
		}
	}
	home, err := filepath.Abs(home)
	if err == nil {
		home, err = filepath.EvalSymlinks(home) // the kernel accepts no symbolic link here
	}
	if err != nil {
		return "", fmt.Errorf("find home directory: %w", err)
	}
	return home, nil
}

// makeSettings creates missing settings files, and returns the paths of all. The host can write beside them and may have
// created links there, so nothing outside home is opened.
func (p *preset) makeSettings(home string) (paths []string, err error) {
	root, err := os.OpenRoot(home)
	if err != nil {
		return nil, fmt.Errorf("open home: %w", err)
	}
	defer cli.CloseInto(&err, root)
	for name, text := range p.settings {
		if err := root.Mkdir(filepath.Dir(name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make settings: %w", err)
		}
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			_, err = file.WriteString(text)
			err = errors.Join(err, file.Close())
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make settings: %w", err)
		}
		paths = append(paths, filepath.Join(home, name))
	}
	return paths, nil
}

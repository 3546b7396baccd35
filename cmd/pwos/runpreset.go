package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
)

// doors are the commands that connect a host to the kernel: its MCP server and its hook.
type doors struct {
	server mcpEntry
	hook   []string // it also gets the variables of server
	keyed  bool     // the kernel has the host's key
}

// setUp completes a job: with a home, and what a preset has for its program.
func (a *app) setUp(ctx context.Context, j *job) error {
	if j.profile.Sign {
		if err := j.sign(ctx); err != nil {
			return cli.Misuse("pwos run", err)
		}
	}
	host := cmp.Or(j.profile.Preset, filepath.Base(j.args[0]))
	known := hostNamed(host)
	if known == nil || known.preset == nil {
		if j.home == "" && j.input.Program.Env["HOME"] != "" {
			if j.profile.Cache {
				return cli.Misuse("pwos run", errors.New("--cache is for a home that pwos gives: name one with --home, and not as the variable HOME"))
			}
			return nil // the settings name another, as a variable
		}
		_, err := j.giveHome(ctx, nil)
		return err
	}
	p := known.preset
	if i := slices.IndexFunc(j.args[1:], func(arg string) bool { return p.own != "" && (arg == p.own || strings.HasPrefix(arg, p.own+"=")) }); i >= 0 {
		return cli.Misuse("pwos run", fmt.Errorf("%s would override a setting that %s needs in pwos run: import settings into its home with \"pwos home import\", or --preset none", p.own, host))
	}
	program := &j.input.Program
	home, err := j.giveHome(ctx, p.settings)
	if err != nil {
		return err
	}
	d, err := a.doors(host)
	if err != nil {
		return err
	}
	if s := program.Sandbox; s.Named() != "off" {
		s.Read = append(s.Read, d.server.command, d.hook[0])
		for name := range p.settings { // it may only read them
			s.Read = append(s.Read, filepath.Join(home, name))
		}
	}
	d.keyed = program.Sandbox.Network() == "kernel" && (slices.Contains(j.profile.Allow, "Upstream:"+p.upstream) || slices.Contains(j.profile.Allow, "Upstream:*"))
	env := maps.Clone(p.env)
	for _, one := range d.server.env { // for programs that the host starts; the doors have them in their own settings
		env[one[0]] = one[1]
	}
	maps.Copy(env, program.Env)
	env["HOME"] = home
	program.Env = env
	program.Command = p.started(program.Command, d, j.stdio && !j.noTTY && a.StdinTerminal() && a.StdoutTerminal())
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
	asked, err := hookProgram()
	if err != nil {
		return nil, err
	}
	env, err := a.kernelEnv()
	if err != nil {
		return nil, err
	}
	env = env[:1] // only the runtime directory: the other paths are hidden from the agent
	return &doors{
		server: mcpEntry{command: self, args: []string{"mcp", "serve", "--no-spawn"}, env: env},
		hook:   []string{asked, "hook", "run", host},
	}, nil
}

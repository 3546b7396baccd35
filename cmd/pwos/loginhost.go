package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/effect/login"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

// keepTime bounds the wait for a renewal of the login that is replaced or removed.
const keepTime = time.Minute

// homeOf returns the home of a login that its host renews.
func homeOf(l *preset.Login) (*login.Home, error) {
	state, err := cli.StateDir()
	if err != nil {
		return nil, err
	}
	return login.Named(state, l.Name), nil
}

// hostLogin has the user log in with the host's own command, in a home that no agent and no session of the user has, and the kernel keep
// that login.
func (a *app) hostLogin(ctx context.Context, l *preset.Login, args []string) (err error) {
	home, err := homeOf(l)
	if err != nil {
		return err
	}
	program, err := exec.LookPath(l.Name)
	if err != nil {
		return installed(preset.Named(l.Name).Package, l.Name)
	}
	if err := a.WithKernel(ctx, cli.UsualTimeout, func(context.Context, *client.Client) error { return nil }); err != nil {
		return err // it has made the state directory
	}
	dir, remove, err := home.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	argv, env := home.Command(dir, args)
	if err := a.runLogin(ctx, dir, program, argv[1:], env); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fault.UpstreamLogin.New("%s failed: %s", quote.Command(argv...), view.Escaped(err.Error())).WithFix("the kernel has the login that it had before")
	}
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	lasting := renewalVariables()
	lasting["PATH"] = ownPath(lasting["PATH"])
	if !inPath(l.Name, lasting["PATH"]) {
		return fault.UpstreamLogin.New("%s is only in a directory of a project, where agents could replace it, and the kernel runs it to renew the login", l.Name).
			WithFix("install it with %s", quote.Command("npm", "install", "-g", preset.Named(l.Name).Package))
	}
	if err := home.Keep(ctx, dir, lasting); err != nil {
		return fault.UpstreamLogin.New("%s", view.Escaped(err.Error())).WithFix("log in with %s; a key is for %s", quote.Command("pwos", "login", l.Name), quote.Command("pwos", "login", "openai"))
	}
	a.Say("the kernel has the login %s, which %s renews: it is used from the next start of %s", l.Name, l.Name, strings.Join(l.Users(), ", "))
	return nil
}

// renewalVariables returns the user's variables that a host needs to reach the server of its login. None says where a login is.
func renewalVariables() map[string]string {
	return variables("PATH", "LANG", "LC_ALL", "LC_CTYPE", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS",
		"CODEX_CA_CERTIFICATE", "CODEX_REFRESH_TOKEN_URL_OVERRIDE")
}

// variables returns those of these variables that are set.
func variables(names ...string) map[string]string {
	all := make(map[string]string)
	for _, name := range names {
		if value, set := os.LookupEnv(name); set {
			all[name] = value
		}
	}
	return all
}

// runLogin runs a host's command that logs in, at the user's terminal, with a home of its own and the variables env.
func (a *app) runLogin(ctx context.Context, home, program string, args []string, env map[string]string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.Stdin, a.Stdout, a.Stderr
	all := variables("TERM", "COLORTERM", "BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
	maps.Copy(all, renewalVariables())
	maps.Copy(all, env)
	all["HOME"] = home
	for _, name := range slices.Sorted(maps.Keys(all)) {
		cmd.Env = append(cmd.Env, name+"="+all[name])
	}
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	return nil
}

// ownPath returns a PATH without directories that are relative or in a project, where an agent could put another program.
func ownPath(path string) string {
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool {
		for at := dir; filepath.IsAbs(at); at = filepath.Dir(at) {
			if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
				return true
			}
			if at == "/" {
				return false
			}
		}
		return true
	}), string(filepath.ListSeparator))
}

// inPath reports whether a program is in a directory of a PATH.
func inPath(program, path string) bool {
	return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, program))
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	})
}

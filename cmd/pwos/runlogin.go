package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
)

// credentialOf returns the user's credential for a login from the environment; "" if there is none, or if it is for another server.
func credentialOf(l *preset.Login) string {
	if value := os.Getenv(l.Variable); os.Getenv(l.Elsewhere) == "" && credential(value) == nil {
		return value
	}
	return ""
}

// takeLogins has the kernel add the credentials that the user has in the environment to the requests of the host, for this run.
// Variables that the settings pass to the host stay with it.
func (j *job) takeLogins(host *preset.Host) {
	program := &j.input.Program
	if insideAgent() { // it has those of its parent
		return
	}
	for _, u := range host.Upstreams {
		l := preset.LoginNamed(u.Name)
		if l == nil || !j.uses(u.Name) {
			continue
		}
		_, passed := program.Env[l.Variable]
		if _, sealed := program.Secrets[l.Variable]; passed || sealed {
			continue
		}
		if secret := credentialOf(l); secret != "" {
			if program.Logins == nil {
				program.Logins = map[string]string{}
			}
			program.Logins[l.Name] = secret
			j.logins = append(j.logins, l)
		}
	}
	// The host uses the first that is there: one of the environment comes before those that the kernel holds.
	slices.SortStableFunc(host.Upstreams, func(a, b preset.Upstream) int { return j.rank(a.Name) - j.rank(b.Name) })
}

// rank is 0 for an upstream whose login the run has from the environment, and 1 for others.
func (j *job) rank(upstream string) int {
	if slices.ContainsFunc(j.logins, func(l *preset.Login) bool { return l.Name == upstream }) {
		return 0
	}
	return 1
}

// route is how the requests of a host to its model are authorised by the kernel.
type route struct {
	login *preset.Login // nil: by an upstream of the configuration
	held  bool          // by the kernel; otherwise the user has it in the environment
}

// routeOf returns by which credential the kernel makes the requests of a host; nil if the host makes them itself.
func (a *app) routeOf(ctx context.Context, j *job, host *preset.Host) (*route, error) {
	cfg, _, err := config.Settings(nil, os.Getenv, io.Discard, version.Build())
	if err != nil {
		return nil, err
	}
	for _, u := range host.Upstreams {
		if configured, own := cfg.Upstream[u.Name]; own && j.uses(u.Name) && !strings.HasPrefix(configured.From, "login:") {
			return &route{}, nil
		}
	}
	if len(j.logins) > 0 {
		return &route{login: j.logins[0]}, nil
	}
	var held []string
	if err := a.WithKernel(ctx, cli.UsualTimeout, func(ctx context.Context, c *client.Client) (err error) {
		held, err = heldLogins(ctx, c)
		return err
	}); err != nil {
		return nil, err
	}
	for _, u := range host.Upstreams {
		if l := preset.LoginNamed(u.Name); l != nil && j.uses(u.Name) && slices.Contains(held, l.Name) {
			return &route{login: l, held: true}, nil
		}
	}
	return nil, nil
}

// says returns what a user is told about a host's login.
func (r *route) says(host *preset.Host) string {
	switch {
	case r == nil && len(host.Upstreams) > 0 && preset.LoginNamed(host.Upstreams[0].Name) != nil:
		return fmt.Sprintf("it logs in inside, and its tokens are not counted; %s gives the kernel a login", quote.Line("pwos", "login", host.Upstreams[0].Name))
	case r == nil:
		return "it logs in inside, and its tokens are not counted"
	case r.login == nil:
		return "its key stays outside"
	case r.held:
		return "your login " + r.login.Name + " stays outside"
	}
	return "your " + r.login.Variable + " stays outside"
}

// explainLogin returns what a user is told about the login of a job's host, which is nil for any other program. A budget that could not
// be counted is an error, as at the start.
func (a *app) explainLogin(ctx context.Context, j *job, host *preset.Host) (string, error) {
	if host == nil {
		return "", nil
	}
	j.takeLogins(host)
	j.input.Program.Logins = nil // the kernel needs none to explain
	if err := a.countable(ctx, j, host); err != nil {
		return "", err
	}
	by, err := a.routeOf(ctx, j, host)
	if err != nil {
		return "", err
	}
	return by.says(host), nil
}

// offerLogins asks the user whether the kernel should keep the credentials that this run has from the environment.
func (a *app) offerLogins(ctx context.Context, j *job) error {
	for _, l := range j.logins {
		key, err := cli.AskKey(ctx, fmt.Sprintf("pwos: Should the kernel keep your %s too, sealed, for when it is not in the environment? [y/N] ", l.Variable))
		if err != nil {
			return err
		}
		if key != 'y' && key != 'Y' {
			continue
		}
		if err := a.WithKernel(ctx, cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
			return keepSealed(ctx, c, schema.LoginKey(l.Name), credentialOf(l), false)
		}); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/schema/quote"
)

// countable returns an error if the budget of an agent host is of tokens or dollars, and the kernel cannot count them, since the host's
// requests to its model do not go through it.
func (a *app) countable(ctx context.Context, j *job, host *preset.Host) error {
	if b := &j.profile.Budget; b.Tokens == nil && b.USD == nil || len(host.Upstreams) == 0 || insideAgent() { // there it is a part of its parent's
		return nil
	}
	by, err := a.routeOf(ctx, j, host)
	if err != nil || by != nil {
		return err
	}
	var ways []string
	for _, u := range host.Upstreams {
		if !j.uses(u.Name) {
			continue
		}
		if l := preset.LoginNamed(u.Name); l != nil && l.Rotates {
			ways = append(ways, quote.Command("pwos", "login", l.Name))
		} else if l != nil {
			ways = append(ways, fmt.Sprintf("%s or the variable %s", quote.Command("pwos", "login", l.Name), l.Variable))
		} else {
			ways = append(ways, "[upstream."+u.Name+"] in the kernel's configuration")
		}
	}
	if len(ways) == 0 {
		return cli.Misuse("pwos run", fmt.Errorf("a budget of tokens or dollars counts requests that the kernel makes, for which %s needs the network kernel and a grant such as Upstream:%s: "+
			"allow it, or leave out tokens and usd", host.Name, host.Upstreams[0].Name))
	}
	return cli.Misuse("pwos run", fmt.Errorf("a budget of tokens or dollars counts requests that the kernel makes, and %s would make them with a login of its own: "+
		"give the kernel one, with %s (docs/doors.md), or leave out tokens and usd", host.Name, strings.Join(ways, ", or ")))
}

// uses reports whether the agent is allowed an upstream, in a network that the kernel serves.
func (j *job) uses(upstream string) bool {
	return j.input.Program.Sandbox.Network() == "kernel" &&
		(slices.Contains(j.profile.Allow, "Upstream:"+upstream) || slices.Contains(j.profile.Allow, "Upstream:*"))
}

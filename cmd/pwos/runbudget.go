package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/version"
)

// countable returns an error if the budget of an agent host is of tokens or dollars, and the kernel cannot count them, since the host's
// requests to its model do not go through it.
func (j *job) countable(host *preset.Host) error {
	if b := &j.profile.Budget; b.Tokens == nil && b.USD == nil || len(host.Upstreams) == 0 {
		return nil
	}
	cfg, _, err := config.Settings(nil, os.Getenv, io.Discard, version.Build())
	if err != nil {
		return err
	}
	var names []string
	for _, u := range host.Upstreams {
		if _, configured := cfg.Upstream[u.Name]; configured && j.uses(u.Name) {
			return nil
		}
		names = append(names, "[upstream."+u.Name+"]")
	}
	return fmt.Errorf("a budget of tokens or dollars counts requests that the kernel makes with a key of its own, and %s would make them with its own login: "+
		"give the kernel the key, as %s in %s (docs/doors.md), or leave out tokens and usd", host.Name, strings.Join(names, " or "), cfg.File)
}

// uses reports whether the agent is allowed an upstream, in a network that the kernel serves.
func (j *job) uses(upstream string) bool {
	return j.input.Program.Sandbox.Network() == "kernel" &&
		(slices.Contains(j.profile.Allow, "Upstream:"+upstream) || slices.Contains(j.profile.Allow, "Upstream:*"))
}

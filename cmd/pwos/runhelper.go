package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/profile"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// helpersVariable has the agent hosts that an agent may start as helpers, separated by commas.
const helpersVariable = "PWOS_HELPERS"

// insideAgent reports whether this process is of an agent: what it runs is the agent's child.
func insideAgent() bool { return os.Getenv("PWOS_PID") != "" }

// permitHelpers adds what the helpers need that an agent may start: an agent gives only what it has itself.
func permitHelpers(p *profile.Profile) error {
	if len(p.Helpers) == 0 {
		return nil
	}
	if p.Allow == nil {
		p.Allow = defaultGrant()
	}
	p.Allow = lacking(p.Allow, []string{schema.SyscallSpawn.Row().Type})
	for _, name := range p.Helpers {
		host := preset.Named(name)
		if host == nil {
			return fmt.Errorf("--helper takes %s, not %q", strings.Join(preset.Names(), ", "), name)
		}
		p.Allow = lacking(p.Allow, host.Grant())
		if p.Budget.Tokens == nil && p.Budget.USD == nil { // as for the host itself
			p.Hosts = lacking(p.Hosts, host.Servers)
		}
	}
	return nil
}

// withHelpers tells the program which helpers it may start, and has the kernel add the credentials of their models.
func (j *job) withHelpers() {
	if len(j.profile.Helpers) == 0 {
		return
	}
	if j.input.Program.Env == nil {
		j.input.Program.Env = make(map[string]string)
	}
	j.input.Program.Env[helpersVariable] = strings.Join(j.profile.Helpers, ",")
	for _, name := range j.profile.Helpers {
		j.takeLogins(preset.Named(name))
	}
}

// asHelper has the kernel leave out what the agent that starts the job does not have itself.
func (j *job) asHelper() error {
	host, err := hostOf(j.profile.Preset, j.args)
	switch {
	case err != nil:
		return err
	case len(j.profile.Helpers) > 0:
		return errors.New("--helper is for agents that a person starts: a helper starts none")
	case !j.detach && !j.explain:
		return errors.New("an agent starts a helper beside it: give -d; it answers by mail, with Syscall_SendMsg, and its output is in its log")
	case host != nil && !slices.Contains(strings.Split(os.Getenv(helpersVariable), ","), host.Name):
		return fault.CapabilityDenied.New("this agent may not start %s as a helper", host.Name).
			WithFix("its user lets it, with the flag --helper of pwos run")
	}
	j.input.Cut = new(true)
	delete(j.input.Program.Env, helpersVariable) // a helper starts none unless it is told to
	return nil
}

// helperLines are the command lines by which the agent of this process starts the helpers that it may start.
func helperLines() (lines []string) {
	self, err := os.Executable()
	for name := range strings.SplitSeq(os.Getenv(helpersVariable), ",") {
		if host := preset.Named(name); host != nil && err == nil {
			words := append([]string{self, "run", "-d", "--name", "NAME", "--", name}, host.Headless...)
			lines = append(lines, quote.Line(words...)+" 'PROMPT'")
		}
	}
	return lines
}

// isHelper returns an error if this process seems to be of an agent, and the kernel takes it for its operator: what is left out for a helper
// would then be missing.
func isHelper(ctx context.Context, c *client.Client) error {
	if !insideAgent() {
		return nil
	}
	_, err := cli.InvokeAs(ctx, c, schema.ApprovalList, &schema.ApprovalListInput{})
	if cli.KernelCode(err) == 403 { // only its operator may
		return nil
	}
	if err != nil {
		return err
	}
	return errors.New("the variable PWOS_PID is set, and this is no agent: unset it")
}

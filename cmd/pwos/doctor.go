package main

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/view"
)

func newDoctor(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "examine this machine: what it can confine, and which hosts are here",
		Long: `doctor says what confines agents on this machine, what it lacks for that and what would
bring it, and which agent hosts are in PATH: their versions, and whether the hooks that
"pwos hook install" has written are in force, and which login the kernel would use for
each. In "pwos HOST" the hook is always on. It starts a kernel if none runs, and asks each
host for its version.

Exit status: 0 all is well, 1 something lacks.`,
		Example: `  pwos doctor`,
		Args:    cli.Arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

// examined is what doctor finds of the machine.
type examined struct {
	Sandbox string   `json:"sandbox"`
	Lacks   []string `json:"lacks"` // each with what would bring it
}

// examinedHost is what doctor finds of an agent host.
type examinedHost struct {
	Host    string `json:"host"`
	Version string `json:"version,omitzero"` // absent: it is not in PATH
	Tested  string `json:"tested"`           // the version that pwos was tried with
	Hook    string `json:"hook"`             // on in pwos HOST alone, in force outside too, or not in force
	Login   string `json:"login"`            // the kernel's, or a variable of the user that has one; "": its own, which is not counted
	Lacks   string `json:"lacks,omitzero"`
}

func (a *app) doctor(ctx context.Context) error {
	known := preset.Hosts()
	hosts := make([]examinedHost, len(known))
	var all sync.WaitGroup
	for i, host := range known {
		hosts[i] = examinedHost{Host: host.Name, Tested: host.Tested, Hook: "in pwos " + host.Name}
		all.Go(func() { hosts[i].examine(ctx, host) })
	}
	var machine examined
	var logins []string
	err := a.WithKernel(ctx, cli.UsualTimeout, func(ctx context.Context, c *client.Client) (err error) {
		found := readParameters(ctx, c)
		machine = examined{Sandbox: found.sandbox, Lacks: lackingMeans(found.gaps)}
		logins, err = heldLogins(ctx, c)
		return err
	})
	all.Wait()
	if err != nil {
		return err
	}
	for i, host := range known {
		hosts[i].Login = loginOf(host, logins)
	}
	if err := a.printExamined(&machine, hosts); err != nil {
		return err
	}
	if len(machine.Lacks) > 0 || slices.ContainsFunc(hosts, func(h examinedHost) bool { return h.Lacks != "" }) {
		return cli.ExitStatus(fault.ExitError) // the output has what
	}
	return nil
}

// lackingMeans returns those gaps of a sandbox that another system would close: they say what that needs.
func lackingMeans(gaps []string) []string {
	lacks := []string{}
	for _, gap := range gaps {
		if strings.Contains(gap, "(needs ") {
			lacks = append(lacks, gap)
		}
	}
	return lacks
}

// examine asks a host for its version, and looks at the hook that is installed for it.
func (h *examinedHost) examine(ctx context.Context, known *preset.Host) {
	if _, err := exec.LookPath(known.Name); err != nil {
		h.Hook = "" // there is no host
		return
	}
	is, err := versionOf(ctx, known.Name)
	switch {
	case err != nil:
		h.Lacks = err.Error()
		return
	case known.Oldest != "" && older(is, known.Oldest):
		h.Lacks = fmt.Sprintf("install %s or newer: this one may use a tool although its hook denies or fails", known.Oldest)
	}
	h.Version = is
	host := hostNamed(known.Name)
	if host == nil || host.hook == nil {
		return
	}
	switch s, err := host.hook.state(ctx, known.Name); {
	case err != nil:
		h.Lacks = err.Error()
	case s.installed && s.inForce():
		h.Hook = "in force outside too"
	case s.installed:
		h.Hook, h.Lacks = "installed, and not in force", s.off
	}
}

func (a *app) printExamined(machine *examined, hosts []examinedHost) error {
	if a.WantsJSON() {
		text, err := schema.Marshal(machine)
		if err != nil {
			return err
		}
		if err := a.PrintLine(text); err != nil {
			return err
		}
		return cli.PrintEach(a.App, hosts)
	}
	t := new(view.Table)
	t.Row("sandbox", view.Escaped(machine.Sandbox))
	for _, gap := range machine.Lacks {
		t.Row("lacks", a.Style(view.Bad, view.Escaped(gap)))
	}
	if len(machine.Lacks) == 0 {
		t.Row("lacks", "nothing that this system could have: "+quote.Command("pwos", "run", "--explain", "--", "PROGRAM")+" says what it does not prevent")
	}
	if err := a.PrintTable(t); err != nil {
		return err
	}
	t = new(view.Table)
	t.Header("host", "version", "tried with", "hook", "login", "lacks")
	for _, h := range hosts {
		version := h.Version
		if version == "" && h.Lacks == "" {
			version = "not in PATH"
		}
		lacks := ""
		if h.Lacks != "" {
			lacks = a.Style(view.Bad, view.Escaped(h.Lacks))
		}
		t.Row(h.Host, version, h.Tested, h.Hook, cmp.Or(h.Login, "its own, not counted"), lacks)
	}
	return a.PrintTable(t)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/policy"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newPolicy(a *app) *cobra.Command {
	return cli.Group("policy", "manage the rules about the arguments of agents' calls",
		`policy is about the rules that narrow what agents may do: which keys, hosts, paths and
amounts. They are written in Cedar, in policy.cedar and policy.d/*.cedar beside the
configuration of the kernel. Without these files there is no policy.`,
		`  pwos policy check              # are the files valid
  pwos policy test --since 24h   # what would the rules have decided
  pwos policy allow --from 1204  # an exception for a refused call
  pwos policy reload             # make the kernel load the files
  pwos policy show               # the rules in force, and their counts`,
		newPolicyCheck(a), newPolicyTest(a), newPolicyAllow(a), newPolicyReload(a), newPolicyShow(a))
}

// reloadPolicy makes the kernel reload its policy files; if none runs, it only prints that.
func (a *app) reloadPolicy(ctx context.Context) error {
	ctx, cancel := a.Bound(ctx, cli.UsualTimeout)
	defer cancel()
	c, err := a.DialRunning(ctx)
	if errors.Is(err, fault.DaemonNotRunning) {
		a.Say("no kernel runs: the next one begins with the changed files")
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := client.Call(ctx, c, schema.PolicyReload, &schema.PolicyReloadInput{}); err != nil {
		return fmt.Errorf("the files were changed, but the running kernel keeps the rules that it has: %w", err)
	}
	return nil
}

func newPolicyCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE…]",
		Short: "check rules without a kernel",
		Long: `check reads rules and reports their faults as FILE:LINE: text: invalid
Cedar, names and types that no syscall has, and rules that can never match. It needs no
kernel. Default: policy.cedar and policy.d/*.cedar beside the configuration.

Exit status: 0 the rules can be loaded, 2 they cannot.`,
		Example: `  pwos policy check
  pwos policy check new.cedar`,
		RunE: func(_ *cobra.Command, args []string) error {
			_, err := a.policyOf(args)
			return err
		},
	}
}

// policyOf compiles the rules of the named files, or of the configuration if none is named. It prints problems to stderr.
func (a *app) policyOf(paths []string) (*policy.Set, error) {
	var files []policy.File
	var err error
	if len(paths) > 0 {
		files, err = policy.ReadFiles(paths)
	} else {
		files, err = policy.Read(client.ConfigFile())
	}
	if err != nil {
		return nil, cli.Misuse("pwos policy check", err)
	}
	set, problems := policy.Compile(files)
	wrong := 0
	for _, p := range problems {
		if _, err := fmt.Fprintln(a.Stderr, p); err != nil {
			return nil, fmt.Errorf("write output: %w", err)
		}
		if !p.Warning {
			wrong++
		}
	}
	switch {
	case wrong > 0:
		a.Say("the policy is not valid")
		return nil, cli.ExitStatus(fault.ExitUsage)
	case len(files) == 0:
		a.Say("there is no policy: neither policy.cedar nor policy.d/*.cedar exists")
		return nil, nil
	case set == nil:
		return nil, errors.New("check policy: valid files compiled to no rules")
	}
	a.Say("%d rules in %d files are valid", len(set.Rules), len(files))
	return set, nil
}

func newPolicyReload(a *app) *cobra.Command {
	return a.OneCall(&cobra.Command{
		Use:   "reload",
		Short: "make the kernel read the rules again",
		Long: `reload makes the running kernel read its policy files again. It loads all of them,
or, if one is invalid, none, and names the invalid line. SIGHUP does the same.`,
		Example: `  pwos policy reload`,
	}, schema.PolicyReload.Type, new(schema.PolicyReloadInput))
}

func newPolicyShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "show the rules in force",
		Long: `show lists the rules that the running kernel applies, with the digest of their
files, and the number of calls that each has decided since it was loaded.`,
		Example: `  pwos policy show
  pwos policy show --json | jq .hash`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Show(cmd.Context(), schema.PolicyShow.Type, &schema.PolicyShowInput{}, func(data schema.Value) error {
				if a.WantsJSON() {
					return a.PrintLine(data)
				}
				shown, err := schema.PolicyShow.Decode(data)
				if err != nil {
					return err
				}
				return a.printPolicy(shown)
			})
		},
	}
}

// printPolicy prints an answer of Policy.Show as a table.
func (a *app) printPolicy(shown *schema.PolicyShowOutput) error {
	switch {
	case shown.Invalid != "":
		a.Say("all calls of agents are refused, since the policy is not valid: %s", shown.Invalid)
		return nil
	case shown.Hash == "":
		a.Say("there is no policy: tokens alone decide")
		return nil
	}
	a.Say("policy %s", shown.Hash)
	t := new(view.Table)
	t.Header("rule", "at", "asks", "decided")
	for _, r := range shown.Rules {
		t.Row(view.Escaped(r.ID), view.Escaped(r.At), r.Ask, strconv.FormatInt(r.Decided, 10))
	}
	if shown.More > 0 {
		a.Say("%d more rules are not shown", shown.More)
	}
	return a.PrintTable(t)
}

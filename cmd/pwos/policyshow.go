package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

func newPolicyShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "show the rules that the kernel goes by",
		Long: `show lists the rules that the running kernel judges calls by, with the digest of their
files, and how many calls each has decided since it was loaded.`,
		Example: `  pwos policy show
  pwos policy show --json | jq .hash`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withKernel(cmd.Context(), usualTimeout, func(ctx context.Context, c *client.Client) error {
				data, err := invoke(ctx, c, schema.PolicyShow.Type, &schema.PolicyShowInput{})
				switch {
				case err != nil:
					return err
				case a.wantsJSON():
					return a.printLine(data)
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

// printPolicy is what Policy.Show has answered, for people.
func (a *app) printPolicy(shown *schema.PolicyShowOutput) error {
	switch {
	case shown.Invalid != "":
		a.say("no agent is served, since the policy is not valid: %s", shown.Invalid)
		return nil
	case shown.Hash == "":
		a.say("there is no policy: what a token allows is allowed")
		return nil
	}
	a.say("policy %s", shown.Hash)
	t := new(table)
	t.header("rule", "at", "asks", "decided")
	for _, r := range shown.Rules {
		t.row(escaped(r.ID), escaped(r.At), r.Ask, strconv.FormatInt(r.Decided, 10))
	}
	if shown.More > 0 {
		a.say("%d more rules are not shown", shown.More)
	}
	return a.printTable(t)
}

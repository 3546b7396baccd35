package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

func newCapShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show [PID]",
		Short: "show what processes were granted, and what they hold",
		Long: `show prints a process's token: who granted it, what it may call, how much of each
resource it may hold at once, and how much it holds. "effective" is what is left of it:
an agent's grant is cut down to what that agent may do itself, then and later. Without a PID it shows all living processes that have
one, a line of JSON each where stdout is no terminal.

Exit status: 4 where the named process has no token.`,
		Example: `  pwos cap show
  pwos cap show 7
  pwos cap show 7 --json`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.showTokens(cmd.Context())
			}
			pid, err := pidOf(args[0], 1)
			if err != nil {
				return usage(cmd, err)
			}
			return a.withKernel(cmd.Context(), usualTimeout, func(ctx context.Context, c *client.Client) error {
				data, err := invoke(ctx, c, schema.CapabilityGet.Type, &schema.CapabilityGetInput{PID: &pid})
				if err != nil {
					return err
				}
				return a.printToken(data)
			})
		},
	}
}

// printToken writes one token, that of Capability.Grant or that of Capability.Get.
func (a *app) printToken(data schema.Value) error {
	if a.wantsJSON() {
		return a.printLine(data)
	}
	members, _ := objectOf(data)
	if members["held"] == nil { // Capability.Grant shows the token alone
		out, err := answerAs[schema.GrantOutput](schema.CapabilityGrant.Type, data)
		if err != nil {
			return err
		}
		t := new(table)
		tokenRows(t, &out.Token)
		for _, resource := range slices.Sorted(maps.Keys(out.ResourceQuotas)) {
			t.row("quota of "+escaped(resource), units(out.ResourceQuotas[resource]))
		}
		return t.write(a.stdout)
	}
	out, err := answerAs[schema.CapabilityGetOutput](schema.CapabilityGet.Type, data)
	if err != nil {
		return err
	}
	t := new(table)
	tokenRows(t, &out.Token)
	if !slices.Equal(out.Effective.AllowedSyscalls, out.AllowedSyscalls) {
		t.row("effective now", strings.Join(out.Effective.AllowedSyscalls, " "))
	}
	for _, resource := range resourcesOf(&out) {
		t.row("quota of "+escaped(resource), quotaText(&out, resource))
	}
	return t.write(a.stdout)
}

// tokenRows are what a token says but for its quotas.
func tokenRows(t *table, token *schema.Token) {
	t.row("pid", fmt.Sprint(token.PID))
	granter := "the operator"
	if token.GrantedBy != 0 {
		granter = fmt.Sprintf("pid %d", token.GrantedBy)
	}
	if len(token.Grants) > 1 {
		granter += " and the operator"
	}
	t.row("granted by", granter)
	t.row("may call", strings.Join(token.AllowedSyscalls, " "))
	t.row("expires", expiry(token.ExpiresAtTick))
	if token.HTTP != nil {
		t.row("may fetch from", fetchText(token.HTTP))
	}
}

// fetchText says what a token's holder may fetch.
func fetchText(grant *schema.HTTPGrant) string {
	text := strings.Join(grant.Hosts, " ")
	if grant.Plain {
		text += " (http: too)"
	}
	if grant.Open {
		text += " (sealed headers are opened)"
	}
	return text
}

func (a *app) showTokens(ctx context.Context) error {
	return a.withKernel(ctx, usualTimeout, func(ctx context.Context, c *client.Client) error {
		processes, err := listProcesses(ctx, c, nil)
		if err != nil {
			return err
		}
		t := new(table)
		t.header("pid", "expires", "quotas", "may call")
		for _, p := range processes {
			data, err := p.token(ctx, c)
			if err != nil {
				return err
			}
			if data == nil {
				continue
			}
			if a.wantsJSON() {
				if err := a.printLine(data); err != nil {
					return err
				}
				continue
			}
			token, err := answerAs[schema.CapabilityGetOutput](schema.CapabilityGet.Type, data)
			if err != nil {
				return err
			}
			t.row(fmt.Sprint(token.PID), expiry(token.ExpiresAtTick), quotaTexts(&token), strings.Join(token.AllowedSyscalls, " "))
		}
		return t.write(a.stdout)
	})
}

// tokenOf returns what Capability.Get says of pid, nil where it has no token.
func tokenOf(ctx context.Context, c *client.Client, pid int64) (schema.Value, error) {
	data, err := invoke(ctx, c, schema.CapabilityGet.Type, &schema.CapabilityGetInput{PID: &pid})
	if kernelCode(err) == 404 {
		return nil, nil
	}
	return data, err
}

func expiry(tick *int64) string {
	if tick == nil {
		return "never"
	}
	return fmt.Sprintf("after tick %d", *tick)
}

// resourcesOf names what a token has a quota of, or its holder holds in spite of it.
func resourcesOf(token *schema.CapabilityGetOutput) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(token.ResourceQuotas)), maps.Keys(token.Held))
	slices.Sort(names)
	return slices.Compact(names)
}

// quotaText is what is held of a resource, the limit, and what of that is left and held by the process's own grants.
func quotaText(token *schema.CapabilityGetOutput, resource string) string {
	text := units(token.Held[resource].Float()) + "/" + units(token.ResourceQuotas[resource])
	if now := token.Effective.ResourceQuotas[resource]; now != token.ResourceQuotas[resource] {
		text += " (" + units(now) + " effective)"
	}
	if below := token.HeldBelow[resource].Float(); below > 0 {
		text += " (" + units(below) + " held by its grants)"
	}
	return text
}

func quotaTexts(token *schema.CapabilityGetOutput) string {
	var texts []string
	for _, resource := range resourcesOf(token) {
		texts = append(texts, escaped(resource)+" "+quotaText(token, resource))
	}
	return strings.Join(texts, ", ")
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newCap(a *app) *cobra.Command {
	return cli.Group("cap", "grant, revoke, show and check what processes may do",
		`cap is about capabilities: which syscalls a process may make, and how much of each
resource it may hold. A process without a grant may make almost no call.`,
		`  pwos cap grant 7 'Memory.*' SYS_SEND_MSG --quota gpu=2
  pwos cap check 7 Memory.Set
  pwos cap show
  pwos cap revoke 7`,
		newCapGrant(a), newCapRevoke(a), newCapShow(a), newCapCheck(a))
}

// checkFlags are the flags of `pwos cap check`.
type checkFlags struct {
	in           schema.CheckInput
	amount, data string
}

func newCapCheck(a *app) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check AGENT SYSCALL",
		Short: "ask whether a process could make a call now",
		Long: `check asks whether a call would pass capability and quota now, without making it. With
--resource and --amount it asks about Syscall.Alloc, Release or Query of that much. With
--data it asks about a call of the process with this data, as "pwos call --explain" does
for your own calls. SYSCALL may be a name as in grants, such as Tool:claude/Bash.

Exit status: 0 it would pass, 3 it would not (the answer has the reason), 4 no such syscall.`,
		Example: `  pwos cap check 7 Memory.Set
  pwos cap check 7 SYS_ALLOC --resource gpu --amount 2 || echo not now`,
		Args: cli.Arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.input(a, cmd, args)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			if in.Data != nil {
				return a.explain(cmd.Context(), in)
			}
			return a.check(cmd.Context(), in)
		},
	}
	cli.MemberFlag(cmd, &f.in, "resource_id", "resource", "resource that the call would name")
	cmd.Flags().StringVar(&f.amount, "amount", "", "units of it that the call would take or give back (default 0)")
	cmd.Flags().StringVar(&f.data, "data", "", "the call's data, one JSON value")
	return cmd
}

// input returns the query that the command line describes. Its errors are usage errors.
func (f *checkFlags) input(a *app, cmd *cobra.Command, args []string) (*schema.CheckInput, error) {
	in := &f.in
	in.PID, in.Syscall = new(int64), args[1]
	err := a.Agent(cmd, args[0], arg.Who{Operator: true}, in.PID)
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("amount") {
		if in.ResourceID == nil {
			return nil, errors.New("--amount needs a --resource: name one")
		}
		amount, err := amountOf(f.amount)
		if err != nil {
			return nil, err
		}
		in.Amount = &amount
	}
	if cmd.Flags().Changed("data") {
		if in.ResourceID != nil {
			return nil, errors.New("--data excludes --resource and --amount: leave them out")
		}
		if in.Data, err = buildData(f.data, nil); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func (a *app) check(ctx context.Context, in *schema.CheckInput) error {
	return a.Show(ctx, schema.CapabilityCheck.Type, in, func(data schema.Value) error {
		out, err := view.AnswerAs[schema.CheckOutput](schema.CapabilityCheck.Type, data)
		if err != nil {
			return err
		}
		if err := a.PrintValue(data); err != nil {
			return err
		}
		if !out.Allowed {
			return cli.ExitStatus(fault.ExitDenied) // the printed answer has the reason
		}
		return nil
	})
}

func newCapRevoke(a *app) *cobra.Command {
	return a.OneCall(&cobra.Command{
		Use:   "revoke AGENT",
		Short: "take a process's capability away",
		Long: `revoke takes away all that a process was granted. No call that starts after revoke
has returned is allowed. The process keeps the resources that it holds until
it releases them. Revoking from a process without a grant is not an error: see "revoked".`,
		Example: `  pwos cap revoke 7`,
	}, schema.CapabilityRevoke.Type, new(schema.RevokeInput), "pid")
}

func newCapShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show [AGENT]",
		Short: "show what processes were granted, and what they hold",
		Long: `show prints a process's token: who granted it, what it may call, how much of each resource
it may hold at once, and how much it holds. "effective" is what counts now: a grant by an
agent is limited to what that agent may do itself. Without one, show lists all living
processes with a token, one line of JSON each if stdout is no terminal.

Exit status: 4 the named process has no token.`,
		Example: `  pwos cap show
  pwos cap show planner
  pwos cap show 7 --json`,
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.showTokens(cmd.Context())
			}
			in := &schema.CapabilityGetInput{PID: new(int64)}
			if err := a.Agent(cmd, args[0], arg.Who{}, in.PID); err != nil {
				return cli.Usage(cmd, err)
			}
			return a.Show(cmd.Context(), schema.CapabilityGet.Type, in, a.printToken)
		},
	}
}

// printToken prints a token, the answer of Capability.Grant or Capability.Get.
func (a *app) printToken(data schema.Value) error {
	if a.WantsJSON() {
		return a.PrintLine(data)
	}
	t, err := view.TokenTable(data)
	if err != nil {
		return err
	}
	return a.Print(t.Text())
}

func (a *app) showTokens(ctx context.Context) error {
	return a.WithKernel(ctx, cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
		processes, err := cli.ListProcesses(ctx, c, nil)
		if err != nil {
			return err
		}
		t := new(view.Table)
		t.Header("pid", "expires", "quotas", "may call")
		for _, p := range processes {
			data, err := tokenOf(ctx, c, &p)
			if err != nil {
				return err
			}
			if data == nil {
				continue
			}
			if a.WantsJSON() {
				if err := a.PrintLine(data); err != nil {
					return err
				}
				continue
			}
			token, err := view.AnswerAs[schema.CapabilityGetOutput](schema.CapabilityGet.Type, data)
			if err != nil {
				return err
			}
			t.Row(fmt.Sprint(token.PID), view.Expiry(token.ExpiresAtTick), view.QuotaTexts(&token), strings.Join(token.AllowedSyscalls, " "))
		}
		return a.Print(t.Text())
	})
}

// tokenOf returns the answer of Capability.Get for a process; nil if it has no token, for example because it has
// terminated.
func tokenOf(ctx context.Context, c *client.Client, p *view.Process) (schema.Value, error) {
	if p.State == view.Terminated {
		return nil, nil
	}
	data, err := cli.Invoke(ctx, c, schema.CapabilityGet.Type, &schema.CapabilityGetInput{PID: &p.PID})
	if cli.KernelCode(err) == 404 {
		return nil, nil
	}
	return data, err
}

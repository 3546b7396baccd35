package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newCap(a *app) *cobra.Command {
	return group("cap", "grant, revoke, show and check what processes may do",
		`cap is about capabilities: which syscalls a process may make, and how much of each
resource it may hold. A process that was granted nothing may do next to nothing.`,
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
		Use:   "check PID SYSCALL",
		Short: "ask whether a process could make a call now",
		Long: `check asks whether a call would pass capability and quota now, and runs nothing. With
--resource and --amount it asks about Syscall.Alloc, Release or Query of that much. With
--data it asks about the process's call with these data, as "pwos call --explain" does
about your own.

Exit status: 0 it would, 3 it would not (the answer has the reason), 4 no such syscall.`,
		Example: `  pwos cap check 7 Memory.Set
  pwos cap check 7 SYS_ALLOC --resource gpu --amount 2 || echo not now`,
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.input(cmd, args)
			if err != nil {
				return usage(cmd, err)
			}
			if in.Data != nil {
				return a.explain(cmd.Context(), in)
			}
			return a.check(cmd.Context(), in)
		},
	}
	memberFlag(cmd, &f.in, "resource_id", "resource", "resource that the call would name")
	cmd.Flags().StringVar(&f.amount, "amount", "", "units of it that the call would take or give back (default 0)")
	cmd.Flags().StringVar(&f.data, "data", "", "the call's data, one JSON value")
	return cmd
}

// input is what the command line asks; its errors are wrong usage.
func (f *checkFlags) input(cmd *cobra.Command, args []string) (*schema.CheckInput, error) {
	pid, err := pidOf(args[0], 0)
	if err != nil {
		return nil, err
	}
	in := &f.in
	in.PID, in.Syscall = &pid, args[1]
	if cmd.Flags().Changed("amount") {
		if in.ResourceID == nil {
			return nil, errors.New("--amount is of a --resource: name one")
		}
		amount, err := amountOf(f.amount)
		if err != nil {
			return nil, err
		}
		in.Amount = &amount
	}
	if cmd.Flags().Changed("data") {
		if in.ResourceID != nil {
			return nil, errors.New("--data says it all: leave out --resource and --amount")
		}
		if in.Data, err = buildData(f.data, nil); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func (a *app) check(ctx context.Context, in *schema.CheckInput) error {
	return a.show(ctx, schema.CapabilityCheck.Type, in, func(data schema.Value) error {
		out, err := view.AnswerAs[schema.CheckOutput](schema.CapabilityCheck.Type, data)
		if err != nil {
			return err
		}
		if err := a.printValue(data); err != nil {
			return err
		}
		if !out.Allowed {
			return exitStatus(exitDenied) // the answer has the reason
		}
		return nil
	})
}

// grantFlags are the flags of `pwos cap grant`.
type grantFlags struct {
	quotas []string
	budget []string
	in     schema.GrantInput
	add    bool
	http   httpFlags
}

func newCapGrant(a *app) *cobra.Command {
	var f grantFlags
	cmd := &cobra.Command{
		Use:   "grant PID SYSCALL...",
		Short: "say what a process may call and hold",
		Long: `grant says what a process may call, in place of all that it was granted before. A
SYSCALL is a type such as Memory.Set, a code such as SYS_ALLOC, Domain.* for all of
a domain, or * for all but what only the operator may; "pwos describe" lists the
types. Crypto.Open has to be named: neither of the last two includes it. The token is
printed.

--add keeps what is there and adds to it, in one step: syscalls and hosts join, a quota
replaces the one of the same resource, and the expiry stays unless another is given. A
grant that has expired is not added to, unless --expires-at-tick renews it. What the
operator adds to an agent's grant is not cut down to what that agent may do.

A quota bounds what is held at once. Holding uses nothing up: what is released can be
held again. A budget says what may be used up in all: the process and what it spawns
have used a part of it already, and to grant it the same again refills nothing.

Exit status: 0 granted, 1 no resource or syscall of that name, 3 more than the
granter holds, 4 no such process.`,
		Example: `  pwos cap grant 7 Memory.Get Memory.Set
  pwos cap grant 7 SYS_ALLOC SYS_RELEASE --quota gpu=2 --quota tokens=1000 --expires-at-tick 3600
  pwos cap grant 7 Http.Fetch --host api.example.com --host '*.example.org'
  pwos cap grant 7 --add 'Ipc.*'
  pwos cap grant 7 --add --budget calls=1000`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.input(args)
			if err != nil {
				return usage(cmd, err)
			}
			return a.grant(cmd.Context(), in)
		},
	}
	cmd.Flags().StringArrayVar(&f.quotas, "quota", nil, "most units that it may hold at once, as resource=amount; may be given again")
	cmd.Flags().BoolVar(&f.add, "add", false, "add to what the process was granted before")
	cmd.Flags().StringSliceVar(&f.budget, "budget", nil, budgetUsage)
	f.http.add(cmd)
	memberFlag(cmd, &f.in, "expires_at_tick", "expires-at-tick", "last tick at which the grant holds (default: it does not expire)")
	return cmd
}

// input is what the command line grants; its errors are wrong usage.
func (f *grantFlags) input(args []string) (*schema.GrantInput, error) {
	pid, err := pidOf(args[0], 1)
	if err != nil {
		return nil, err
	}
	in := &f.in
	in.PID, in.AllowedSyscalls = pid, args[1:]
	if f.add {
		add := "add"
		in.Mode = &add
	}
	if in.ResourceQuotas, err = quotasOf(f.quotas); err != nil {
		return nil, err
	}
	in.HTTP = f.http.grant()
	if in.Budget, err = budgetOf(f.budget); err != nil {
		return nil, err
	}
	nothing := in.Budget == nil && in.ResourceQuotas == nil && in.ExpiresAtTick == nil && in.HTTP == nil
	if len(in.AllowedSyscalls) == 0 && (!f.add || nothing) {
		return nil, errors.New(`name at least one SYSCALL; "pwos cap revoke" takes all away`)
	}
	return in, nil
}

func (a *app) grant(ctx context.Context, in *schema.GrantInput) error {
	return a.show(ctx, schema.CapabilityGrant.Type, in, func(data schema.Value) error {
		out, err := view.AnswerAs[schema.GrantOutput](schema.CapabilityGrant.Type, data)
		if err != nil {
			return err
		}
		if out.Warning != "" {
			a.say("warning: %s", out.Warning)
		}
		return a.printToken(data)
	})
}

func newCapRevoke(a *app) *cobra.Command {
	return a.oneCall(&cobra.Command{
		Use:   "revoke PID",
		Short: "take a process's capability away",
		Long: `revoke takes away all that a process was granted. No call that starts after revoke
has returned gets through. What the process holds of resources stays with it until
it is released. That it had nothing to take away is no error: see "revoked".`,
		Example: `  pwos cap revoke 7`,
	}, schema.CapabilityRevoke.Type, new(schema.RevokeInput), "pid")
}

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
			return a.show(cmd.Context(), schema.CapabilityGet.Type, &schema.CapabilityGetInput{PID: &pid}, a.printToken)
		},
	}
}

// printToken prints the token of a Capability.Grant or Capability.Get.
func (a *app) printToken(data schema.Value) error {
	if a.wantsJSON() {
		return a.printLine(data)
	}
	t, err := view.TokenTable(data)
	if err != nil {
		return err
	}
	return a.print(t.Text())
}

func (a *app) showTokens(ctx context.Context) error {
	return a.withKernel(ctx, usualTimeout, func(ctx context.Context, c *client.Client) error {
		processes, err := listProcesses(ctx, c, nil)
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
			if a.wantsJSON() {
				if err := a.printLine(data); err != nil {
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
		return a.print(t.Text())
	})
}

// tokenOf returns the answer of Capability.Get for a process, nil if it has no token, for example because it has
// ended.
func tokenOf(ctx context.Context, c *client.Client, p *view.Process) (schema.Value, error) {
	if p.State == view.Terminated {
		return nil, nil
	}
	data, err := invoke(ctx, c, schema.CapabilityGet.Type, &schema.CapabilityGetInput{PID: &p.PID})
	if kernelCode(err) == 404 {
		return nil, nil
	}
	return data, err
}

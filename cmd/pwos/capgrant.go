package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// grantFlags are the flags of `pwos cap grant`.
type grantFlags struct {
	quotas  []string
	budget  []string
	expires numberFlag
	add     bool
	http    httpFlags
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
			in, err := f.input(cmd, args)
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
	f.expires.add(cmd, "expires-at-tick", "last tick at which the grant holds (default: it does not expire)")
	return cmd
}

// input is what the command line grants; its errors are wrong usage.
func (f *grantFlags) input(cmd *cobra.Command, args []string) (*schema.GrantInput, error) {
	pid, err := pidOf(args[0], 1)
	if err != nil {
		return nil, err
	}
	in := &schema.GrantInput{PID: pid, AllowedSyscalls: args[1:]}
	if f.add {
		add := "add"
		in.Mode = &add
	}
	if in.ResourceQuotas, err = quotasOf(f.quotas); err != nil {
		return nil, err
	}
	if in.ExpiresAtTick, err = f.expires.given(cmd, "expires-at-tick", 0); err != nil {
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
	return a.withKernel(ctx, usualTimeout, func(ctx context.Context, c *client.Client) error {
		data, err := invoke(ctx, c, schema.CapabilityGrant.Type, in)
		if err != nil {
			return err
		}
		out, err := answerAs[schema.GrantOutput](schema.CapabilityGrant.Type, data)
		if err != nil {
			return err
		}
		if out.Warning != "" {
			a.say("warning: %s", out.Warning)
		}
		return a.printToken(data)
	})
}

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/profile"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// grantFlags are the flags of `pwos cap grant`.
type grantFlags struct {
	in   schema.GrantInput
	add  bool
	line profile.Line
}

func newCapGrant(a *app) *cobra.Command {
	var f grantFlags
	cmd := &cobra.Command{
		Use:   "grant AGENT SYSCALL...",
		Short: "set what a process may call and hold",
		Long: `grant sets what a process may call. It replaces all earlier grants. A
SYSCALL is a type such as Memory.Set, a code such as SYS_ALLOC, Domain.* for all of
a domain, or * for all except the operator's own; "pwos describe" lists the
types. Crypto.Open must be named: no pattern includes it. The token is
printed.

--add keeps the present grant and adds to it, in one step: syscalls and hosts are added, a
quota replaces the one for the same resource, and the expiry stays unless another is
given. A grant that has expired can only be added to with a new --ttl or --expires-at-tick;
without --add, a grant without them never expires. What the operator adds to a grant is not limited by what the original granter may do.

A quota bounds what is held at once: released units can be
held again. A budget bounds the total use: what the process and its descendants
have used stays used, and granting the same budget again refills nothing.

Exit status: 0 granted, 1 no resource or syscall has that name, 3 more than the
granter holds, 4 no such process.`,
		Example: `  pwos cap grant 7 Memory.Get Memory.Set
  pwos cap grant 7 SYS_ALLOC SYS_RELEASE --quota gpu=2 --quota tokens=1000 --expires-at-tick 3600
  pwos cap grant 7 Http.Fetch --host api.example.com --host '*.example.org'
  pwos cap grant 7 --add 'Ipc.*' --ttl 1h
  pwos cap grant 7 --add --budget calls=1000`,
		Args: cli.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := f.input(a, cmd, args)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return a.grant(cmd.Context(), in, f.line.Profile().TTL)
		},
	}
	addSettings(cmd.Flags(), &f.line, "quota", "budget", "ttl", "host", "http-plain", "http-open")
	cmd.Flags().BoolVar(&f.add, "add", false, "add to what the process was granted before")
	cli.MemberFlag(cmd, &f.in, "expires_at_tick", "expires-at-tick", "last tick at which the grant is valid (default: it does not expire)")
	return cmd
}

// input returns the grant that the command line describes. Its errors are usage errors.
func (f *grantFlags) input(a *app, cmd *cobra.Command, args []string) (*schema.GrantInput, error) {
	in := &f.in
	in.AllowedSyscalls = args[1:]
	if err := a.Agent(cmd, args[0], arg.Who{}, &in.PID); err != nil {
		return nil, err
	}
	if f.add {
		add := "add"
		in.Mode = &add
	}
	settings := f.line.Profile()
	given := settings.Capability()
	if given != nil {
		in.ResourceQuotas, in.HTTP, in.Budget = given.ResourceQuotas, given.HTTP, given.Budget
	}
	if settings.TTL != 0 && in.ExpiresAtTick != nil {
		return nil, errors.New("--ttl and --expires-at-tick both say when it expires: give one")
	}
	nothing := given == nil && in.ExpiresAtTick == nil
	if len(in.AllowedSyscalls) == 0 && (!f.add || nothing) {
		return nil, errors.New(`name at least one SYSCALL; "pwos cap revoke" takes all away`)
	}
	return in, nil
}

func (a *app) grant(ctx context.Context, in *schema.GrantInput, ttl time.Duration) error {
	if ttl != 0 {
		if err := a.WithKernel(ctx, cli.UsualTimeout, func(ctx context.Context, c *client.Client) (err error) {
			in.ExpiresAtTick, err = lastTick(ctx, c, ttl)
			return err
		}); err != nil {
			return err
		}
	}
	return a.Show(ctx, schema.CapabilityGrant.Type, in, func(data schema.Value) error {
		out, err := view.AnswerAs[schema.GrantOutput](schema.CapabilityGrant.Type, data)
		if err != nil {
			return err
		}
		if out.Warning != "" {
			a.Say("warning: %s", out.Warning)
		}
		return a.printToken(data)
	})
}

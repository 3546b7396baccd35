package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

func newLogout(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "logout NAME",
		Short: "have the kernel forget a key of a model or a host's login",
		Long: `logout removes a login that the kernel holds. Hosts that run are refused at their next
request; those that start later use a login of their own. The vendor still accepts the key:
withdraw it there.`,
		Example:           `  pwos logout anthropic`,
		Args:              cli.Arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: completeLogin,
		RunE: func(cmd *cobra.Command, args []string) error {
			login, err := loginNamed(args[0])
			if err != nil {
				return cli.Usage(cmd, err)
			}
			if login.Rotates {
				return a.forgetLogin(cmd.Context(), login)
			}
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				_, err := client.Call(ctx, c, schema.MemoryDelete, &schema.MemoryDeleteInput{Key: schema.LoginKey(login.Name)})
				return a.forgotten(login, !errors.Is(err, fault.MemoryNotFound), err)
			})
		},
	}
}

// forgetLogin removes a login that its host renews.
func (a *app) forgetLogin(ctx context.Context, login *preset.Login) error {
	home, err := homeOf(login)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, keepTime)
	defer cancel()
	had, err := home.Forget(ctx)
	return a.forgotten(login, had, err)
}

// forgotten says how the removal of a login has ended.
func (a *app) forgotten(login *preset.Login, had bool, err error) error {
	switch {
	case !had && (err == nil || errors.Is(err, fault.MemoryNotFound)):
		return fault.MemoryNotFound.New("the kernel holds no login %s", login.Name).WithFix("%s lists those it holds", quote.Command("pwos", "login"))
	case err == nil:
		a.Say("the kernel has forgotten the login %s", login.Name)
	}
	return err
}

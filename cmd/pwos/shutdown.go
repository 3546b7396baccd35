package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
)

func newShutdown(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "shutdown",
		Short: "shut down the kernel cleanly",
		Long: `shutdown asks the kernel to end and waits until it has. Calls that it accepted before are
finished and answered. If no kernel runs, it starts none and exits with 6.`,
		Example: `  pwos shutdown
  pwos shutdown --timeout 2m`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.shutdown(cmd.Context())
		},
	}
}

func (a *app) shutdown(ctx context.Context) error {
	return a.With(ctx, cli.UsualTimeout, a.DialRunning, func(ctx context.Context, c *client.Client) error {
		answer, err := c.Shutdown(ctx)
		if err != nil {
			return err
		}
		return a.PrintValue(answer.Data)
	})
}

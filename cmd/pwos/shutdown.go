package main

import (
	"context"

	"github.com/spf13/cobra"
)

func newShutdown(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "shutdown",
		Short: "end the kernel in good order",
		Long: `shutdown asks the kernel to end and waits until it has: what it accepted before is
finished and answered. Without a kernel it starts none and exits with 6.`,
		Example: `  pwos shutdown
  pwos shutdown --timeout 2m`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.shutdown(cmd.Context())
		},
	}
}

func (a *app) shutdown(ctx context.Context) (err error) {
	ctx, cancel := a.bound(ctx, usualTimeout)
	defer cancel()
	c, err := a.dialRunning(ctx)
	if err != nil {
		return err
	}
	defer closeInto(&err, c)
	answer, err := c.Shutdown(ctx)
	if err != nil {
		return err
	}
	return a.printValue(answer.Data)
}

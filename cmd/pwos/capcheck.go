package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// checkFlags are the flags of `pwos cap check`.
type checkFlags struct{ resource, amount, data string }

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
	cmd.Flags().StringVar(&f.resource, "resource", "", "resource that the call would name")
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
	in := &schema.CheckInput{PID: &pid, Syscall: args[1], ResourceID: textGiven(cmd, "resource", f.resource)}
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
	return a.withKernel(ctx, usualTimeout, func(ctx context.Context, c *client.Client) error {
		data, err := invoke(ctx, c, schema.CapabilityCheck.Type, in)
		if err != nil {
			return err
		}
		out, err := answerAs[schema.CheckOutput](schema.CapabilityCheck.Type, data)
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

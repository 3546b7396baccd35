package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newBudget(a *app) *cobra.Command {
	prices := false
	cmd := &cobra.Command{
		Use:   "budget [AGENT]",
		Short: "show what agents have left of their budgets",
		Long: `budget shows the budgets of agents: what is spent, what is reserved for
calls in flight, what was passed on to children, and what is left. With AGENT it
shows that process and its descendants. When an agent ends, the rest of its budget goes
back to the process that gave it.

--prices lists what dollars are counted by instead, in US dollars per million tokens: the prices in
[prices] of the configuration, and those that pwos knows. A model without one is counted at the
dearest of its vendor.`,
		Example: `  pwos run --budget calls=500,usd=2 -- ./agent.sh
  pwos budget
  pwos budget 7 --json
  pwos budget --prices`,
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if prices {
				if len(args) > 0 {
					return cli.Usage(cmd, errors.New("--prices is about models: leave out the agent"))
				}
				return a.printPrices()
			}
			in := &schema.BudgetShowInput{}
			if len(args) == 1 {
				in.TargetPID = new(int64)
				if err := a.Agent(cmd, args[0], arg.Who{}, in.TargetPID); err != nil {
					return cli.Usage(cmd, err)
				}
			}
			return a.WithKernel(cmd.Context(), cli.UsualTimeout, func(ctx context.Context, c *client.Client) error {
				out, err := cli.InvokeAs(ctx, c, schema.BudgetShow, in)
				if err != nil {
					return err
				}
				return a.printBudgets(out.Budgets)
			})
		},
	}
	cmd.Flags().BoolVar(&prices, "prices", false, "list the prices of models")
	return cmd
}

func (a *app) printBudgets(budgets []schema.BudgetState) error {
	switch {
	case a.WantsJSON():
		return cli.PrintEach(a.App, budgets)
	case len(budgets) == 0:
		a.Say(`no agent has a budget: "pwos run --budget calls=500 -- PROGRAM" gives one`)
	}
	return a.PrintTable(view.BudgetTable(budgets, time.Now()))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// withBudgets adds the remaining budgets to the processes.
func withBudgets(ctx context.Context, c *client.Client, processes []view.Process) error {
	out, err := cli.InvokeAs(ctx, c, schema.BudgetShow, &schema.BudgetShowInput{})
	if errors.Is(err, fault.WireUnknownSyscall) || errors.Is(err, fault.Forbidden) { // no budgets, or not readable
		return nil
	}
	if err != nil {
		return err
	}
	budgets := make(map[int64]*schema.BudgetState, len(out.Budgets))
	for i := range out.Budgets {
		budgets[out.Budgets[i].PID] = &out.Budgets[i]
	}
	for i := range processes {
		processes[i].Budget = budgets[processes[i].PID]
	}
	return nil
}

// psFlags are the flags of `pwos ps`.
type psFlags struct {
	state string
	all   bool
	wide  bool
	at    cli.KernelChoice
}

func newPs(a *app) *cobra.Command {
	var f psFlags
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "list the processes and their resources",
		Long: `ps lists the living processes, children below their parents, with the
tick of their birth, the use of their quotas (held/limit), what is left of their
budgets, and for agents with a program its restarts and its command. If the terminal is
too narrow, priority and birth tick are left out, unless --wide is given.

In a cluster, --all also lists the processes of the other kernels, and --kernel NAME those of one:
as far as the members file there allows it (docs/cluster.md). A kernel that does not answer is
named, in JSON as {"kernel", "error"}.

If stdout is no terminal, each process is a line of JSON: the answer of Process.List
and its present quotas. It prints nothing if there are no processes.

Exit status: 6 a kernel that was asked is away, 3 it refused.`,
		Example: `  pwos ps
  pwos ps --all
  pwos ps --kernel beta
  pwos ps --wide
  pwos ps --state BLOCKED --json`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if states := []string{"CREATED", "READY", "RUNNING", "BLOCKED", view.Terminated}; f.state != "" && !slices.Contains(states, strings.ToUpper(f.state)) {
				return cli.Usage(cmd, fmt.Errorf("--state must be one of %s, not %q", strings.Join(states, ", "), f.state))
			}
			return a.ps(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&f.state, "state", "", "only processes in this state, such as READY or TERMINATED")
	cmd.Flags().BoolVarP(&f.all, "all", "a", false, "also list ended processes that the kernel still remembers, and those of the other kernels of the cluster")
	f.at.Flag(a.App, cmd)
	cmd.Flags().BoolVarP(&f.wide, "wide", "w", false, "print all columns, even on a narrow terminal")
	return cmd
}

func (a *app) ps(ctx context.Context, f psFlags) error {
	f.at.All = f.all
	t := new(view.Table)
	named := false
	var waiting []schema.StepReview
	err := a.AtKernels(ctx, cli.UsualTimeout, f.at, func(ctx context.Context, one cli.Asked) error {
		if named = one.Kernel != ""; len(t.Rows) == 0 {
			header := view.ProcessHeader()
			if named {
				header = append([]string{"kernel"}, header...)
			}
			t.Header(header...)
		}
		if err := a.psOf(ctx, one, f, t); err != nil || one.Client != one.Own || a.WantsJSON() {
			return err
		}
		var err error
		waiting, err = reviews(ctx, one.Client)
		return err
	})
	if len(t.Rows) == 0 && !a.WantsJSON() && err == nil {
		a.Say(`no such processes: "pwos run -d -- PROGRAM" starts one, "pwos ps --all" shows those that have ended`)
	}
	if !f.wide {
		t.Narrow(a.Width(), "priority", "birth tick")
	}
	err = errors.Join(a.Print(t.Text()), err)
	a.tellReviews(waiting)
	return err
}

// psOf adds the processes of one kernel to t, or prints them as JSON.
func (a *app) psOf(ctx context.Context, one cli.Asked, f psFlags, t *view.Table) error {
	c, kernel := one.Client, one.Kernel
	var state *string
	if f.state != "" {
		wanted := strings.ToUpper(f.state)
		state = &wanted
	}
	processes, err := cli.ListProcesses(ctx, c, state)
	if err != nil {
		return err
	}
	if state == nil && !f.all {
		processes = slices.DeleteFunc(processes, func(p view.Process) bool { return p.State == view.Terminated })
	}
	if err := withBudgets(ctx, c, processes); err != nil {
		return err
	}
	for _, n := range view.Tree(processes) {
		token, err := tokenOf(ctx, c, &n)
		if err != nil && (kernel == "" || !errors.Is(err, fault.Forbidden)) {
			return err
		}
		if a.WantsJSON() {
			line, err := n.Line(token)
			if err != nil {
				return err
			}
			if err := a.PrintLine(view.OfKernel(kernel, line)); err != nil {
				return err
			}
			continue
		}
		row, err := n.Row(token)
		if err != nil {
			return err
		}
		if kernel != "" {
			row = append([]string{view.Escaped(kernel)}, row...)
		}
		t.Row(row...)
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// process is what Process.List says of one.
type process struct {
	schema.Descriptor

	raw    schema.Value
	depth  int                 // below the processes without a parent in the list
	budget *schema.BudgetState // nil: it has none of its own, or nobody has asked
}

// withBudgets has processes tell what they have left of their budgets.
func withBudgets(ctx context.Context, c *client.Client, processes []process) error {
	out, err := invokeAs(ctx, c, schema.BudgetShow, &schema.BudgetShowInput{})
	if errors.Is(err, fault.WireUnknownSyscall) { // of a kernel that has no budgets
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
		processes[i].budget = budgets[processes[i].PID]
	}
	return nil
}

// listProcesses returns the processes by ascending PID, those in the given state only where it is not nil.
func listProcesses(ctx context.Context, c *client.Client, state *string) ([]process, error) {
	const typ = "Process.List"
	data, err := invoke(ctx, c, typ, &schema.ProcessListInput{State: state})
	if err != nil {
		return nil, err
	}
	members, _ := objectOf(data)
	list, _ := arrayOf(members["processes"])
	processes := make([]process, 0, len(list))
	for _, raw := range list {
		d, err := answerAs[schema.Descriptor](typ, raw)
		if err != nil {
			return nil, err
		}
		processes = append(processes, process{Descriptor: d, raw: raw})
	}
	return processes, nil
}

// token returns what Capability.Get says of p, nil where it has none, such as when it has ended.
func (p *process) token(ctx context.Context, c *client.Client) (schema.Value, error) {
	if p.State == terminated {
		return nil, nil
	}
	return tokenOf(ctx, c, p.PID)
}

// line is p as JSON, with its quotas as its token has them, and its budget.
func (p *process) line(token schema.Value) ([]byte, error) {
	quotas := []byte("{}")
	if out, ok := valueOf[schema.CapabilityGetOutput](token); ok {
		var o object
		for _, resource := range resourcesOf(&out) {
			o = o.raw(resource, object(nil).
				raw("held", []byte(units(out.Held[resource].Float()))).
				raw("limit", []byte(units(out.ResourceQuotas[resource]))).close())
		}
		quotas = o.close()
	}
	open := object(bytes.TrimSuffix(slices.Clone(bytes.TrimSpace(p.raw)), []byte("}")))
	open = open.raw("quotas", quotas)
	if p.budget != nil {
		budget, err := schema.Marshal(p.budget)
		if err != nil {
			return nil, err
		}
		open = open.raw("budget", budget)
	}
	return open.close(), nil
}

// indent shows the depth. A tree may be as deep as agents make it, a terminal is only so wide.
func (p *process) indent() string { return strings.Repeat("  ", min(p.depth, 20)) }

// treeOf puts each process below its parent, siblings by PID. One whose parent is not in the list stands at the top.
func treeOf(processes []process) []process {
	listed := make(map[int64]bool, len(processes))
	for _, p := range processes {
		listed[p.PID] = true
	}
	var next []process // a stack: the tree may be deep
	children := make(map[int64][]process)
	for _, p := range slices.Backward(processes) {
		if listed[p.ParentPID] {
			children[p.ParentPID] = append(children[p.ParentPID], p)
		} else {
			next = append(next, p)
		}
	}
	tree := make([]process, 0, len(processes))
	for len(next) > 0 {
		p := next[len(next)-1]
		next = next[:len(next)-1]
		tree = append(tree, p)
		for _, child := range children[p.PID] {
			child.depth = p.depth + 1
			next = append(next, child)
		}
	}
	return tree
}

// psFlags are the flags of `pwos ps`.
type psFlags struct {
	state string
	all   bool
	wide  bool
}

// terminated is the state of processes that have ended (PROTOCOL 6).
const terminated = "TERMINATED"

func newPs(a *app) *cobra.Command {
	var f psFlags
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "list the processes, with what they hold",
		Long: `ps lists the processes that have not ended, children below their parents, with the
tick of their birth, what each holds of its quotas (held/limit), what it has left of its
budget, and for agents with a program how often that was started again, and its command. Where a terminal has no
room for all of it, priority and birth tick are left out, unless --wide is given.

Where stdout is no terminal, each process is a line of JSON: what Process.List says
of it, and its quotas as they are now. No processes: nothing is printed.`,
		Example: `  pwos ps
  pwos ps --all
  pwos ps --wide
  pwos ps --state BLOCKED --json`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if states := []string{"CREATED", "READY", "RUNNING", "BLOCKED", terminated}; f.state != "" && !slices.Contains(states, strings.ToUpper(f.state)) {
				return usage(cmd, fmt.Errorf("--state is one of %s, not %q", strings.Join(states, ", "), f.state))
			}
			return a.ps(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&f.state, "state", "", "only processes in this state, such as READY or TERMINATED")
	cmd.Flags().BoolVarP(&f.all, "all", "a", false, "ended processes too, as far as the kernel remembers them")
	cmd.Flags().BoolVarP(&f.wide, "wide", "w", false, "all columns, however wide the terminal is")
	return cmd
}

func (a *app) ps(ctx context.Context, f psFlags) error {
	return a.withKernel(ctx, usualTimeout, func(ctx context.Context, c *client.Client) error {
		var state *string
		if f.state != "" {
			wanted := strings.ToUpper(f.state)
			state = &wanted
		}
		processes, err := listProcesses(ctx, c, state)
		if err != nil {
			return err
		}
		if state == nil && !f.all {
			processes = slices.DeleteFunc(processes, func(p process) bool { return p.State == terminated })
		}
		if err := withBudgets(ctx, c, processes); err != nil {
			return err
		}
		t := new(table)
		t.header(psHeader()...)
		for _, n := range treeOf(processes) {
			token, err := n.token(ctx, c)
			if err != nil {
				return err
			}
			if a.wantsJSON() {
				line, err := n.line(token)
				if err != nil {
					return err
				}
				if err := a.printLine(line); err != nil {
					return err
				}
				continue
			}
			row, err := n.row(token)
			if err != nil {
				return err
			}
			t.row(row...)
		}
		if len(t.rows) == 0 && !a.wantsJSON() {
			a.say(`no such processes: "pwos run -d -- PROGRAM" starts one, "pwos ps --all" shows those that have ended`)
		}
		if !f.wide {
			t.narrow(a.width(), "priority", "birth tick")
		}
		return t.write(a.stdout)
	})
}

func psHeader() []string {
	return []string{"pid", "agent", "state", "priority", "birth tick", "quotas", "restarts", "command"}
}

// row is a process as ps shows it to people.
func (p *process) row(token schema.Value) ([]string, error) {
	quotas := ""
	if token != nil {
		out, err := answerAs[schema.CapabilityGetOutput](schema.CapabilityGet.Type, token)
		if err != nil {
			return nil, err
		}
		quotas = quotaTexts(&out)
	}
	if left := budgetLeft(p.budget); left != "" {
		quotas = strings.TrimPrefix(quotas+", "+left, ", ")
	}
	restarts := ""
	if p.Restarts != nil {
		restarts = fmt.Sprint(*p.Restarts)
	}
	return []string{
		fmt.Sprint(p.PID), p.indent() + shortened(escaped(p.AgentID), maxName), stateText(&p.Descriptor), p.Priority, fmt.Sprint(p.BirthTick),
		quotas, restarts, commandText(p.Command),
	}, nil
}

// budgetLeft says what is left of a budget.
func budgetLeft(b *schema.BudgetState) string {
	if b == nil {
		return ""
	}
	var texts []string
	for _, l := range linesOf(b) {
		texts = append(texts, fmt.Sprintf("%s %s of %s left", l.kind, l.Left, l.Given))
	}
	return strings.Join(texts, ", ")
}

// stateText is the state, and what there is to know about it.
func stateText(d *schema.Descriptor) string {
	switch {
	case d.Paused && d.State != terminated:
		return d.State + ", paused"
	case d.BlockedUntilTick != nil:
		return fmt.Sprintf("%s until %d", d.State, *d.BlockedUntilTick)
	case d.State == terminated && d.Exit != nil:
		return d.State + ", " + endWord(d.Exit)
	}
	return d.State
}

// endWord is an end in a word or two.
func endWord(end *schema.Exit) string {
	switch {
	case end.Reason != "exited" && end.Reason != "signalled":
		return escaped(end.Reason)
	case end.Signal != nil:
		return fmt.Sprintf("signal %d", *end.Signal)
	}
	return fmt.Sprintf("exit %d", value(end.Code))
}

// maxName is how much of an agent's name is shown, in characters: a longer one would push what it is, and what all others
// are, out of sight.
const maxName = 40

// commandText is a command as it could be typed, cut off where it is long.
func commandText(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = quoted(word)
	}
	return shortened(escaped(strings.Join(words, " ")), 60)
}

// shortened is text of at most so many characters.
func shortened(text string, most int) string {
	runes := []rune(text)
	if len(runes) > most {
		runes = append(runes[:most-3], []rune("...")...)
	}
	return string(runes)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

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

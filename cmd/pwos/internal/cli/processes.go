package cli

import (
	"context"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// ListProcesses returns the processes by PID, or only those in a state if state is not nil.
func ListProcesses(ctx context.Context, c *client.Client, state *string) ([]view.Process, error) {
	const typ = "Process.List"
	data, err := Invoke(ctx, c, typ, &schema.ProcessListInput{State: state})
	if err != nil {
		return nil, err
	}
	members, _ := view.Members(data)
	list, _ := view.Elements(members["processes"])
	processes := make([]view.Process, 0, len(list))
	for _, raw := range list {
		d, err := view.AnswerAs[schema.Descriptor](typ, raw)
		if err != nil {
			return nil, err
		}
		processes = append(processes, view.Process{Descriptor: d, Raw: raw})
	}
	return processes, nil
}

// Describe returns the descriptor of a process.
func Describe(ctx context.Context, c *client.Client, pid int64) (schema.Descriptor, error) {
	return InvokeAs(ctx, c, schema.ProcessGet, &schema.ProcessGetInput{PID: pid})
}

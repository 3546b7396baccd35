package audit

import (
	"context"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

func (d *Domain) search(call *kernel.Call, in *schema.EventSearchInput) (out schema.EventSearchOutput, err error) {
	phrases, err := schema.ParseSearch(in.Query)
	if err != nil {
		return out, err
	}
	call.Read(func(ctx context.Context) (kernel.Result, error) {
		found, err := d.journal.Search(ctx, call, in, phrases, d.family(call.PID))
		if err != nil {
			return kernel.Result{}, err
		}
		return kernel.Result{Data: found.AppendAs(nil, call.Message.Dialect)}, nil
	})
	return out, nil
}

// family are the processes whose calls a process may see, ascending: itself and its descendants; nil: all.
func (d *Domain) family(pid int64) []int64 {
	if pid == kernel.Operator {
		return nil
	}
	pids := []int64{pid}
	for next := pid + 1; d.processes.Process(next) != nil; next++ { // a child is younger than its parent
		if kernel.Descends(d.processes, next, pid) {
			pids = append(pids, next)
		}
	}
	return pids
}

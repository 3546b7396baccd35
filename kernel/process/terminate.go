package process

import (
	"fmt"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// terminate answers Syscall.Terminate. The processes end first, so that none of them can spawn, or be granted anything,
// while what they leave behind is cleared away; a crash in between leaves the rest to Orphans.
func (d *Domain) terminate(call *kernel.Call, in *schema.TerminateInput) (kernel.Result, error) {
	target := kernel.Visible(d.table, call, in.TargetPID)
	if target == nil {
		return kernel.Result{}, unknown(in.TargetPID)
	}
	result := kernel.Result{Data: append(appendPID(nil, `{"target_pid":`, in.TargetPID), '}')}
	if !d.table.known(in.TargetPID) {
		return result, nil // whose descendant it was is forgotten; ending it again does nothing
	}
	if own := in.TargetPID == call.PID || kernel.Descends(d.table, in.TargetPID, call.PID); call.PID != kernel.Operator && !own {
		return kernel.Result{}, schema.Errorf(schema.Forbidden,
			"pid %d may not terminate pid %d: a process ends itself and its descendants, the operator ends any", call.PID, in.TargetPID)
	}
	if target.State == terminated {
		result.Effect = d.stop(d.table.endedWith(in.TargetPID)) // their programs may still be on their way out
		return result, nil
	}
	reason := said(in.Reason, fmt.Sprintf("terminated by pid %d", call.PID))
	pids := d.table.subtree(in.TargetPID)
	result.Steps, result.Effect = steps(pids, reason), d.stop(pids)
	return result, nil
}

// Repeat implements kernel.Repeater: who ends processes waits until nothing of their programs is left, and who spawns one until
// its program has been started, however often they ask.
func (d *Domain) Repeat(call *kernel.Call, data []byte) *kernel.Work {
	switch in := call.Input.(type) {
	case *schema.TerminateInput:
		return d.stop(d.table.endedWith(in.TargetPID))
	case *schema.SpawnInput:
		if out, fault := call.Syscall.Output().Decode(data); fault == nil && in.Command != nil {
			return &kernel.Work{Await: out.(*schema.SpawnOutput).ChildPID}
		}
	}
	return nil
}

// steps are the commands that end processes and clear away what they leave behind.
func steps(pids []int64, reason string) []schema.Request {
	return append(
		[]schema.Request{schema.ProcessExit.With(&schema.ProcessExitInput{PIDs: pids, Reason: reason})},
		sweep(pids, pids, pids)...)
}

// sweep are the commands that take tokens, what is held, and mailboxes away from processes.
func sweep(tokens, holders, mailboxes []int64) []schema.Request {
	var steps []schema.Request
	if len(tokens) > 0 {
		steps = append(steps, schema.CapabilityStrip.With(&schema.StripInput{PIDs: tokens}))
	}
	if len(holders) > 0 {
		steps = append(steps, schema.ResourceFree.With(&schema.ResourceFreeInput{PIDs: holders}))
	}
	if len(mailboxes) > 0 {
		steps = append(steps, schema.IPCClose.With(&schema.MailboxInput{PIDs: mailboxes}))
	}
	return steps
}

// exit applies Process.Exit to one process. No child outlives its parent: descendants that are still alive go with it,
// which happens only where a program ends by itself.
func (d *Domain) exit(call *kernel.Call, pid int64) {
	for _, pid := range d.table.subtree(pid) {
		p, _ := d.table.processes.Get(pid)
		d.contexts.release(p.Origin, p.Identity)
		forgotten := d.table.end(pid, call.Tick)
		d.note(call, schema.ProcessTerminated, pid)
		d.view.touch(pid)
		d.view.touch(forgotten)
	}
}

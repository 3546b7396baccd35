package process

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// terminate answers Syscall.Terminate. The processes end first, so that none of them can spawn, or be granted anything,
// while what they leave behind is cleared away; a crash in between leaves the rest to Orphans, and what has not ended yet alive.
func (d *Domain) terminate(call *kernel.Call, in *schema.TerminateInput) (schema.TerminateOutput, error) {
	out := schema.TerminateOutput{TargetPID: in.TargetPID}
	target := kernel.Visible(d.table, call, in.TargetPID)
	if target == nil {
		return out, kernel.NoProcess(in.TargetPID)
	}
	if !d.table.known(in.TargetPID) {
		return out, nil // whose descendant it was is forgotten; ending it again does nothing
	}
	if own := in.TargetPID == call.PID || kernel.Descends(d.table, in.TargetPID, call.PID); call.PID != kernel.Operator && !own {
		return out, fault.CapabilityNotYours.New("pid %d may not terminate pid %d", call.PID, in.TargetPID).
			WithFix("a process ends itself and its descendants, the operator ends any").With("pid", strconv.FormatInt(in.TargetPID, 10))
	}
	if target.State == terminated {
		call.Begin(d.stop(d.table.endedWith(in.TargetPID))) // their programs may still be on their way out
		return out, nil
	}
	tree := d.table.descend(in.TargetPID)
	var programs []int64
	seen := 0
	return kernel.InSlices(call, func() (schema.TerminateOutput, bool) {
		all := tree.more(visits)
		programs = append(programs, d.withPrograms(tree.pids[seen:])...)
		if seen = len(tree.pids); all {
			slices.Reverse(programs)
			end(call, tree.childrenFirst(), said(in.Reason, fmt.Sprintf("terminated by pid %d", call.PID)))
			call.Begin(stopping(programs))
		}
		return out, all
	}), nil
}

// visits is how many processes an end looks at in one turn, to find those that end with it.
const visits = 1024

// Repeat implements kernel.Repeater: who ends processes waits until nothing of their programs is left, and who spawns one until
// its program has been started, however often they ask.
func (d *Domain) Repeat(call *kernel.Call, data []byte) *kernel.Work {
	if in, ok := call.Input.(*schema.TerminateInput); ok {
		return d.stop(d.table.endedWith(in.TargetPID))
	}
	if in, ok := call.Input.(*schema.SpawnInput); ok && in.Command != nil {
		if out, err := call.Syscall.Output().Decode(data); err == nil {
			return &kernel.Work{Await: out.(*schema.SpawnOutput).ChildPID}
		}
	}
	return nil
}

// exits is how many processes a step ends or clears up after. A step is one entry of the journal, and holds up all actors while it
// is applied.
const exits = 256

// end has processes end and what they leave behind cleared away, in slices that keep their order.
func end(call *kernel.Call, pids []int64, reason string) {
	for part := range slices.Chunk(pids, exits) {
		call.Step(schema.ProcessExit.With(&schema.ProcessExitInput{PIDs: part, Reason: reason}))
	}
	for _, step := range sweep(pids, pids, pids) {
		call.Step(step)
	}
}

// sweep are the commands that take tokens, what is held, and mailboxes away from processes.
func sweep(tokens, holders, mailboxes []int64) []schema.Request {
	var steps []schema.Request
	for part := range slices.Chunk(tokens, exits) {
		steps = append(steps, schema.CapabilityStrip.With(&schema.StripInput{PIDs: part}))
	}
	for part := range slices.Chunk(holders, exits) {
		steps = append(steps, schema.ResourceFree.With(&schema.ResourceFreeInput{PIDs: part}))
	}
	for part := range slices.Chunk(mailboxes, exits) {
		steps = append(steps, schema.IPCClose.With(&schema.MailboxInput{PIDs: part}))
	}
	return steps
}

// exit answers Process.Exit.
func (d *Domain) exit(call *kernel.Call, in *schema.ProcessExitInput) (schema.SuccessOutput, error) {
	call.Begin(d.stop(in.PIDs))
	return done(call, in)
}

// applyExit ends processes. No child outlives its parent: descendants that are still alive go with it, which happens only where
// a program ends by itself.
func (d *Domain) applyExit(e *kernel.Entry, in *schema.ProcessExitInput) {
	for _, root := range in.PIDs {
		for _, pid := range d.table.subtree(root) {
			p, _ := d.table.processes.Get(pid)
			d.contexts.release(p.Origin, p.Identity)
			forgotten := d.table.end(pid, e.Tick)
			d.note(e, schema.ProcessTerminated, pid)
			d.view.touch(pid)
			d.view.touch(forgotten)
		}
	}
}

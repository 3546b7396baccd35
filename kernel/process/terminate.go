package process

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// terminate answers Syscall.Terminate.
func (d *Domain) terminate(call *kernel.Call, in *schema.TerminateInput) (out schema.TerminateOutput, do *Errand, err error) {
	if in.Abroad() {
		do, err = d.terminateAbroad(call, in)
	} else {
		out, err = d.terminateHere(call, in)
	}
	return out, do, err
}

// applyTerminate applies what the end of a process at another kernel changes here: the steps of another one have changed the
// table.
func (d *Domain) applyTerminate(e *kernel.Entry, in *schema.TerminateInput) {
	if in.Abroad() {
		d.applyErrand(e)
	}
}

// terminateHere answers Syscall.Terminate for this kernel. The processes end first, so that none of them can spawn, or
// be granted anything, during the clean-up. After a crash Orphans completes the clean-up, and
// processes that have not ended yet stay alive.
func (d *Domain) terminateHere(call *kernel.Call, in *schema.TerminateInput) (schema.TerminateOutput, error) {
	out := schema.TerminateOutput{TargetPID: in.TargetPID}
	target := kernel.Visible(d.table, call, in.TargetPID)
	if target == nil {
		return out, kernel.NoProcess(in.TargetPID)
	}
	if !d.table.known(in.TargetPID) {
		return out, nil // its ancestors are forgotten; ending it again does nothing
	}
	if own := in.TargetPID == call.PID || kernel.Descends(d.table, in.TargetPID, call.PID); call.PID != kernel.Operator && !own {
		return out, fault.CapabilityNotYours.New("pid %d may not terminate pid %d", call.PID, in.TargetPID).
			WithFix("a process ends itself and its descendants, the operator ends any").With("pid", strconv.FormatInt(in.TargetPID, 10))
	}
	if target.State == terminated {
		call.Begin(d.stop(d.table.endedWith(in.TargetPID))) // their programs may still be ending
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

// visits is how many processes an end checks in one turn, to find those that end with it.
const visits = 1024

// Repeat implements kernel.Repeater: a repeated end of processes waits until their programs have ended, and a
// repeated spawn until its program has started.
func (d *Domain) Repeat(call *kernel.Call, data []byte) *kernel.Work {
	if in, ok := call.Input.(*schema.TerminateInput); ok && !in.Abroad() {
		return d.stop(d.table.endedWith(in.TargetPID))
	}
	if in, ok := call.Input.(*schema.SpawnInput); ok && !in.Abroad() && in.Command != nil {
		if out, err := call.Syscall.Output().Decode(data); err == nil {
			return &kernel.Work{Await: out.(*schema.SpawnOutput).ChildPID}
		}
	}
	return nil
}

// exits is how many processes one step ends or cleans up after. A step is one entry of the journal, and blocks all
// actors while it is applied.
const exits = 256

// end ends processes and cleans up after them, in slices that keep their order.
func end(call *kernel.Call, pids []int64, reason string) {
	for part := range slices.Chunk(pids, exits) {
		call.Step(schema.ProcessExit.With(&schema.ProcessExitInput{PIDs: part, Reason: reason}))
	}
	for _, step := range sweep(pids, pids, pids) {
		call.Step(step)
	}
}

// sweep returns the commands that remove tokens, holdings and mailboxes of processes.
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
	call.Announce(kernel.News{Exited: in.PIDs})
	return done(call, in)
}

// applyExit ends processes. No child outlives its parent: living descendants end too, which only
// happens when a program ends on its own.
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

// Orphans returns the commands of a recovery that remove tokens, holdings and mailboxes of processes that are not
// alive. A crash leaves these when it interrupts a spawn, whose child then never existed, or a termination. The PIDs
// with each may come in any order; the operator's stay.
func Orphans(alive func(pid int64) bool, tokens, holders, mailboxes []int64) []schema.Request {
	dead := func(pids []int64) []int64 {
		var list []int64
		for _, pid := range pids {
			if pid != kernel.Operator && !alive(pid) {
				list = append(list, pid)
			}
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	return sweep(dead(tokens), dead(holders), dead(mailboxes))
}

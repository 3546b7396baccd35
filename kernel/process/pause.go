package process

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// pausing answers Process.Pause, or Process.Resume.
func (d *Domain) pausing(paused bool) func(*kernel.Call, *schema.PauseInput) (schema.PauseOutput, error) {
	return func(call *kernel.Call, in *schema.PauseInput) (schema.PauseOutput, error) {
		pids, err := d.meant(call, in, paused)
		if programs := d.withPrograms(pids); programs != nil {
			call.Begin(&kernel.Work{Halt: programs, On: paused})
		}
		call.Announce(kernel.News{Resumed: !paused})
		return schema.PauseOutput{Processes: int64(len(pids))}, err
	}
}

// applyPausing applies Process.Pause, or Process.Resume.
func (d *Domain) applyPausing(paused bool) func(*kernel.Entry, *schema.PauseInput) {
	return func(_ *kernel.Entry, in *schema.PauseInput) {
		for _, pid := range d.others(in, paused) {
			d.change(pid, func(p *schema.Descriptor) { p.Paused = paused })
		}
	}
}

// meant are the living processes that a call selects and that are not yet in the wanted state.
func (d *Domain) meant(call *kernel.Call, in *schema.PauseInput, paused bool) ([]int64, error) {
	switch {
	case in.All == (in.TargetPID != nil):
		return nil, kernel.Invalid("target_pid", "must be given, or all, and not both")
	case in.All:
		return d.others(in, paused), nil
	}
	switch p := kernel.Visible(d.table, call, *in.TargetPID); {
	case p == nil:
		return nil, kernel.NoProcess(*in.TargetPID)
	case p.State == terminated:
		return nil, fault.ProcessIsEnded.New("pid %d has ended", *in.TargetPID).With("pid", strconv.FormatInt(*in.TargetPID, 10))
	}
	return d.others(in, paused), nil
}

// others are the living processes of an input that are not yet in the wanted state.
func (d *Domain) others(in *schema.PauseInput, paused bool) (pids []int64) {
	add := func(pid int64) {
		if p, ok := d.table.processes.Get(pid); ok && p.State != terminated && p.Paused != paused {
			pids = append(pids, pid)
		}
	}
	if in.All {
		d.table.processes.Scan(func(pid int64, _ *schema.Descriptor) bool {
			add(pid)
			return true
		})
		return pids
	}
	for _, pid := range d.table.subtree(*in.TargetPID) {
		add(pid)
	}
	return pids
}

// KeyIntent is the prefix of the intent of a key's process, before the fingerprint. With the operator as parent,
// which no agent can have as its own, it identifies the process after a restart, whatever its agent_id.
const KeyIntent = "key:"

// KernelIntent is the same for the process of another kernel.
const KernelIntent = "kernel:"

// attach answers Process.Attach (PROTOCOL 11). The connection becomes the process after the answer.
func (d *Domain) attach(call *kernel.Call, in *schema.AttachInput) (out schema.AttachOutput, _ error) {
	if call.Refused != nil {
		return out, call.Refused
	}
	found := d.table.names[sibling{call.PID, call.Origin, in.AgentID}]
	if len(found) == 0 {
		if err := checkAgentID("agent_id", in.AgentID); err != nil {
			return out, err
		}
		child := d.table.next
		return schema.AttachOutput{PID: child, AgentID: in.AgentID, Created: true}, d.endowChild(call, child, in.Capabilities)
	}
	p := d.table.Process(found[0])
	switch {
	case p.Command != nil:
		return out, taken(p, "runs a program")
	case strings.HasPrefix(p.Intent, KeyIntent), strings.HasPrefix(p.Intent, KernelIntent):
		return out, taken(p, "belongs to a key of authorized_keys")
	}
	return schema.AttachOutput{PID: p.PID, AgentID: p.AgentID}, d.sameGrant(call, p, in.Capabilities)
}

// taken refuses to attach to a process that belongs to another caller.
func taken(p *schema.Descriptor, why string) *fault.Fault {
	return fault.ProcessTaken.New("pid %d has this name already, and %s", p.PID, why).With("pid", strconv.FormatInt(p.PID, 10))
}

// sameGrant refuses capabilities that differ from the process's grant; asking for none is allowed.
func (d *Domain) sameGrant(call *kernel.Call, p *schema.Descriptor, asked *schema.SpawnCapability) error {
	if asked == nil {
		return nil
	}
	grant, err := d.grant(call, p.PID, asked)
	if err != nil {
		return err
	}
	want, err := kernel.NewGrant(grant, call.PID, d.pools, schema.Registrable)
	if err != nil {
		return err
	}
	budgeted := asked.Budget == nil || d.budgets != nil && d.budgets.Same(p.PID, asked.Budget)
	if token := d.tokens.Token(p.PID); token != nil && budgeted && equal(&token.Granted.TokenGrant, want) {
		return nil
	}
	return fault.ProcessOtherGrant.New("pid %d has this name already, and other capabilities: see \"pwos cap show %[1]d\"", p.PID).
		WithFix("leave capabilities out, or make them what it has").With("pid", strconv.FormatInt(p.PID, 10))
}

// equal reports whether two grants are equal.
func equal(a, b *schema.TokenGrant) bool {
	one, err := schema.Marshal(a)
	other, err2 := schema.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(one, other)
}

// applyAttach adds the process, if the call has created it.
func (d *Domain) applyAttach(e *kernel.Entry, _ *schema.AttachInput) {
	if out := kernel.Reply[schema.AttachOutput](e, schema.ProcessAttach.Output()); out.Created {
		d.born(e, d.child(e, out.AgentID))
	}
}

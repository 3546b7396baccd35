package delta

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// commit gives the delta the ledger's next number: no command comes between deciding and applying.
func (d *Domain) commit(call *kernel.Call, in *schema.CommitDeltaInput) (out schema.CommitDeltaOutput, err error) {
	for field, name := range map[string]*string{"agent_id": in.AgentID, "intent_type": in.IntentType, "action_type": in.ActionType} {
		if name == nil {
			continue
		}
		if err := kernel.CheckName(field, *name); err != nil {
			return out, err
		}
	}
	agent, err := d.agent(call, in.AgentID)
	if err != nil {
		return out, err
	}
	if call.Prepared == nil && !shallow(in.Changes) {
		return out, kernel.Invalid("changes", "must be nested less deeply: Syscall.GetState must be able to return the state within %d levels", schema.MaxDepth)
	}
	at := address(call.Origin, agent)
	l, _ := d.ledgers.Get(at)
	now := d.tally(at)
	if err := bounded("resource_changes", now.resources, in.ResourceChanges); err != nil {
		return out, err
	}
	if err := bounded("relationship_changes", now.relationships, in.RelationshipChanges); err != nil {
		return out, err
	}
	return schema.CommitDeltaOutput{AgentID: agent, DeltaSeq: l.last + 1}, nil
}

// Prepare implements kernel.Preparer: a delta may be long.
func (d *Domain) Prepare(call *kernel.Call) {
	if in, ok := call.Input.(*schema.CommitDeltaInput); ok && shallow(in.Changes) {
		call.Prepared = encode(in)
	}
}

// shallow reports whether changes fit an answer, in which they are nested one level deeper than in
// the request.
func shallow(changes map[string]schema.Value) bool {
	const above = len(`{{{{`) // {"data":{"memory":{"state":{
	for _, value := range changes {
		if schema.TooDeep(value, schema.MaxDepth-above) {
			return false
		}
	}
	return true
}

// bounded keeps sums finite: JSON has no other numbers. Every prefix of the log is then finite too, and a rollback
// leaves a prefix.
func bounded(member string, now *sums, changes map[string]float64) error {
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if have := sum(now, name); math.IsInf(have+changes[name], 0) {
			return kernel.Invalid(member+"."+name, "must leave a finite sum: it is %v already, and %v more is too much", have, changes[name])
		}
	}
	return nil
}

// rollback has a step drop the deltas: neither the request nor the answer of the contract has to name the agent.
func (d *Domain) rollback(call *kernel.Call, in *schema.RollbackInput) (schema.RollbackOutput, error) {
	agent, err := d.agent(call, in.AgentID)
	if err != nil {
		return schema.RollbackOutput{}, err
	}
	l, _ := d.ledgers.Get(address(call.Origin, agent))
	dropped := len(l.log) - l.upTo(in.ToTick)
	if dropped > 0 {
		call.Step(schema.DeltaDrop.With(&schema.DeltaDropInput{AgentID: agent, ToTick: in.ToTick}))
	}
	return schema.RollbackOutput{RolledBackTo: in.ToTick, Dropped: int64(dropped)}, nil
}

func drop(*kernel.Call, *schema.DeltaDropInput) (schema.SuccessOutput, error) {
	return schema.SuccessOutput{Success: true}, nil
}

// checkpoint counts the deltas of all agents in all origins. It changes only the number of the next checkpoint (CAP
// 1): every delta is in the journal already.
func (d *Domain) checkpoint(call *kernel.Call, in *schema.CheckpointInput) (schema.CheckpointOutput, error) {
	count := d.total
	if call.PID != kernel.Operator || in.AgentID != nil {
		agent, err := d.agent(call, in.AgentID)
		if err != nil {
			return schema.CheckpointOutput{}, err
		}
		l, _ := d.ledgers.Get(address(call.Origin, agent))
		count = int64(len(l.log))
	}
	return schema.CheckpointOutput{TotalDeltas: count, CheckpointID: d.checkpoints + 1}, nil
}

// state describes a process: an agent only reads its own (CAP 1). The descriptor is the present one, whatever tick
// the memory is folded to.
func (d *Domain) state(call *kernel.Call, in *schema.GetStateInput) (out schema.GetStateOutput, err error) {
	target := call.PID
	if in.TargetPID != nil {
		target = *in.TargetPID
	}
	switch {
	case target == kernel.Operator:
		return out, kernel.Invalid("target_pid", "is missing: the operator has no state of its own: name a process, or act as one with pid")
	case call.PID != kernel.Operator && call.PID != target:
		return out, fault.CapabilityNotYours.New("pid %d may only read its own state, not that of pid %d: leave out target_pid, or ask the operator", call.PID, target).
			With("pid", strconv.FormatInt(target, 10))
	}
	p := d.processes.Process(target)
	if p == nil {
		return out, noProcess(target)
	}
	out.Descriptor = *p
	d.remember(call, &out, in.AtTick)
	return out, nil
}

// A memory of up to so many deltas and bytes is folded on the actor.
const (
	foldedAtOnce = 32
	bytesAtOnce  = 8 << 10
)

// remember adds the state of an agent's memory at a tick to an answer, nothing if it has no memory.
func (d *Domain) remember(call *kernel.Call, out *schema.GetStateOutput, atTick *int64) {
	at := address(out.Descriptor.Origin, out.Descriptor.AgentID)
	l, _ := d.ledgers.Get(at)
	n := len(l.log)
	if atTick != nil {
		n = l.upTo(*atTick)
	}
	switch {
	case n == 0:
		return
	case n <= foldedAtOnce && d.tally(at).bytes <= bytesAtOnce:
		var f fold
		for _, one := range l.log[:n] {
			f = f.add(one.body)
		}
		out.Memory = f.output()
		return
	}
	p := d.pasts[at]
	if p == nil {
		p = newPast()
		d.pasts[at] = p
	}
	answer, log, drops := *out, l.log, p.dropped()
	kernel.Compute(call, func(ctx context.Context) (_ schema.GetStateOutput, err error) {
		answer.Memory, err = p.at(ctx, log, drops, n)
		return answer, err
	})
}

// agent returns the agent whose memory a call is about: a process's own, or the one that the operator names.
func (d *Domain) agent(call *kernel.Call, named *string) (string, error) {
	if call.PID == kernel.Operator {
		if named == nil {
			return "", kernel.Invalid("agent_id", "is missing: the operator has no memory of its own: name an agent, or act as a process with pid")
		}
		return *named, nil
	}
	p := d.processes.Process(call.PID)
	if p == nil {
		return "", noProcess(call.PID)
	}
	if named != nil && *named != p.AgentID {
		return "", fault.CapabilityNotYours.New("pid %d may not touch the memory of agent %q: its own agent is %q: leave out agent_id, or ask the operator",
			call.PID, *named, p.AgentID).With("agent", *named)
	}
	return p.AgentID, nil
}

func noProcess(pid int64) error {
	return fault.ProcessNotFound.New("no process has pid %d: Process.List names them all", pid).With("pid", strconv.FormatInt(pid, 10))
}

package delta

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// commit decides Syscall.CommitDelta. The delta's number is the ledger's next: no command comes between deciding and
// applying.
func (d *Domain) commit(call *kernel.Call, in *schema.CommitDeltaInput) (kernel.Result, error) {
	for field, name := range map[string]*string{"agent_id": in.AgentID, "intent_type": in.IntentType, "action_type": in.ActionType} {
		if name == nil {
			continue
		}
		if fault := kernel.CheckName(field, *name); fault != nil {
			return kernel.Result{}, fault
		}
	}
	agent, fault := d.agent(call, in.AgentID)
	if fault != nil {
		return kernel.Result{}, fault
	}
	if !shallow(in.Changes) {
		return kernel.Result{}, kernel.Invalid("changes", "must be nested less deeply: Syscall.GetState must be able to return the state within %d levels", schema.MaxDepth)
	}
	at := address(call.Origin, agent)
	l, _ := d.ledgers.Get(at)
	now := d.history(at, l.log).now
	if fault := bounded("resource_changes", now.resources, in.ResourceChanges); fault != nil {
		return kernel.Result{}, fault
	}
	if fault := bounded("relationship_changes", now.relationships, in.RelationshipChanges); fault != nil {
		return kernel.Result{}, fault
	}
	data := schema.AppendString([]byte(`{"agent_id":`), agent)
	data = strconv.AppendInt(append(data, `,"delta_seq":`...), l.last+1, 10)
	return kernel.Result{Data: append(data, '}')}, nil
}

// shallow reports whether changes can be part of an answer: there they lie one level deeper than in the request.
func shallow(changes map[string]schema.Value) bool {
	answer := append([]byte(`{"data":{"memory":{"state":`), patch(changes)...)
	return schema.Valid(append(answer, "}}}"...))
}

// bounded keeps sums finite: JSON has no other numbers. Whatever part of the log is folded then is, since a rollback leaves
// a beginning of it.
func bounded(member string, now *sums, changes map[string]float64) *fault.Fault {
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if have := sum(now, name); math.IsInf(have+changes[name], 0) {
			return kernel.Invalid(member+"."+name, "must leave a finite sum: it is %v already, and %v more is too much", have, changes[name])
		}
	}
	return nil
}

// rollback decides Syscall.Rollback. The dropping is a command of its own, since the request need not name the agent, and
// the answer that the contract gives does not.
func (d *Domain) rollback(call *kernel.Call, in *schema.RollbackInput) (kernel.Result, error) {
	agent, fault := d.agent(call, in.AgentID)
	if fault != nil {
		return kernel.Result{}, fault
	}
	l, _ := d.ledgers.Get(address(call.Origin, agent))
	dropped := len(l.log) - l.upTo(in.ToTick)
	data := strconv.AppendInt([]byte(`{"rolled_back_to":`), in.ToTick, 10)
	data = strconv.AppendInt(append(data, `,"dropped":`...), int64(dropped), 10)
	result := kernel.Result{Data: append(data, '}')}
	if dropped > 0 {
		result.Steps = []schema.Request{schema.DeltaDrop.With(&schema.DeltaDropInput{AgentID: agent, ToTick: in.ToTick})}
	}
	return result, nil
}

// checkpoint decides Syscall.Checkpoint. The operator's counts the deltas of all agents in all origins; a checkpoint
// changes nothing but the number that the next one gets (CAP 1), every delta being in the journal already.
func (d *Domain) checkpoint(call *kernel.Call, in *schema.CheckpointInput) (kernel.Result, error) {
	count := d.total
	if call.PID != kernel.Operator || in.AgentID != nil {
		agent, fault := d.agent(call, in.AgentID)
		if fault != nil {
			return kernel.Result{}, fault
		}
		l, _ := d.ledgers.Get(address(call.Origin, agent))
		count = int64(len(l.log))
	}
	data := strconv.AppendInt([]byte(`{"total_deltas":`), count, 10)
	data = strconv.AppendInt(append(data, `,"checkpoint_id":`...), d.checkpoints+1, 10)
	return kernel.Result{Data: append(data, '}')}, nil
}

// state decides Syscall.GetState: an agent reads its own alone (CAP 1). The descriptor is the present one whatever tick
// the memory is folded up to.
func (d *Domain) state(call *kernel.Call, in *schema.GetStateInput) (kernel.Result, error) {
	target := call.PID
	if in.TargetPID != nil {
		target = *in.TargetPID
	}
	switch {
	case target == kernel.Operator:
		return kernel.Result{}, kernel.Invalid("target_pid", "is missing: the operator has no state of its own: name a process, or act as one with pid")
	case call.PID != kernel.Operator && call.PID != target:
		return kernel.Result{}, fault.CapabilityDenied.New("pid %d may read its own state only, not that of pid %d: leave out target_pid, or ask the operator", call.PID, target)
	}
	p := d.processes.Process(target)
	if p == nil {
		return kernel.Result{}, noProcess(target)
	}
	data, err := schema.Marshal(p)
	if err != nil {
		return kernel.Result{}, err
	}
	return kernel.Result{Data: d.appendMemory(data, p, in.AtTick)}, nil
}

// appendMemory adds to a descriptor what its agent's memory was at a tick, where there was any.
func (d *Domain) appendMemory(descriptor []byte, p *schema.Descriptor, atTick *int64) []byte {
	at := address(p.Origin, p.AgentID)
	l, _ := d.ledgers.Get(at)
	log := l.log
	if atTick != nil {
		log = log[:l.upTo(*atTick)]
	}
	if len(log) == 0 {
		return descriptor
	}
	f := d.history(at, l.log).at(log)
	data := append(descriptor[:len(descriptor)-1], `,"memory":`...)
	return append(f.appendMemory(data), '}')
}

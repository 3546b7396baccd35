package process

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// spawn answers Syscall.Spawn.
func (d *Domain) spawn(call *kernel.Call, in *schema.SpawnInput) (out schema.SpawnOutput, do *Errand, err error) {
	if in = d.cut(call, in); in.Abroad() {
		do, err = d.spawnAbroad(call, in)
	} else {
		out, err = d.spawnHere(call, in)
	}
	return out, do, err
}

// spawnHere answers Syscall.Spawn for this kernel. The child's PID is known before the child exists: this domain decides nothing else
// until the steps are done. If one fails, the next child gets the same PID: no process ever had it.
func (d *Domain) spawnHere(call *kernel.Call, in *schema.SpawnInput) (out schema.SpawnOutput, _ error) {
	if err := d.able(call.PID); err != nil {
		return out, err
	}
	if err := d.fresh(call); err != nil {
		return out, err
	}
	name, err := d.name(call, in.ChildAgentID)
	if err != nil {
		return out, err
	}
	if err := cmp.Or(checkChildID(call, in), kernel.CheckName("intent", said(in.Intent, ""))); err != nil {
		return out, err
	}
	if err := d.checkProgram(call, &in.Program); err != nil {
		return out, err
	}
	child := d.table.next
	if err := d.endowChild(call, child, in.Capabilities); err != nil {
		return out, err
	}
	if in.Command != nil {
		call.Begin(&kernel.Work{Start: &kernel.Program{PID: child, AgentID: name, Origin: call.Origin, Spec: d.inherited(call.PID, in.Program)}})
	}
	return schema.SpawnOutput{ChildPID: child, ChildAgentID: name}, nil
}

// endowChild stores the grant of a child that does not exist yet.
func (d *Domain) endowChild(call *kernel.Call, child int64, asked *schema.SpawnCapability) error {
	grant, err := d.grant(call, child, asked)
	if err != nil {
		return err
	}
	call.Step(schema.ProcessPrepare.With(&schema.ProcessPrepareInput{PID: child, ResourceQuota: grant.ResourceQuotas}))
	by := call.PID // the step outlives the call's place in its batch
	call.Step(schema.CapabilityEndow.With(&schema.EndowInput{GrantInput: *grant, GrantedBy: &by}))
	call.Step(schema.IPCOpen.With(&schema.MailboxInput{PIDs: []int64{child}}))
	return nil
}

// grant is what a child may do: what its parent asks for, if the parent has all of it, else the
// default grant, as far as the parent has it (PROTOCOL 5).
func (d *Domain) grant(call *kernel.Call, child int64, asked *schema.SpawnCapability) (*schema.GrantInput, *fault.Fault) {
	operator := call.PID == kernel.Operator
	if !operator && call.Token == nil {
		return nil, fault.CapabilityDenied.New("pid %d cannot spawn: it has no token to give from", call.PID).
			WithFix("allow it to with %s", kernel.AddCommand(nil, call.PID, 0, "SYS_SPAWN"))
	}
	if asked == nil {
		grant := kernel.DefaultGrant(child, d.pools)
		if !operator {
			Cut(grant, call.Token, call.Tick)
		}
		return grant, nil
	}
	made, err := kernel.NewGrant(&schema.GrantInput{
		PID:             child,
		AllowedSyscalls: asked.AllowedSyscalls,
		ResourceQuotas:  asked.ResourceQuotas,
		ExpiresAtTick:   asked.ExpiresAtTick,
		HTTP:            asked.HTTP,
		Budget:          asked.Budget,
	}, call.PID, d.pools, kernel.Known(d.registry, call.Origin))
	if err != nil {
		const at = "capabilities."
		err.Message = strings.Replace(err.Message, err.Field, at+err.Field, 1)
		err.Field = at + err.Field
		return nil, err
	}
	if !operator {
		if err := call.Token.Covers(made, call.Tick); err != nil {
			return nil, err
		}
	}
	return &schema.GrantInput{
		PID:             child,
		AllowedSyscalls: made.AllowedSyscalls,
		ResourceQuotas:  made.ResourceQuotas,
		ExpiresAtTick:   made.ExpiresAtTick,
		HTTP:            made.HTTP,
		Budget:          asked.Budget,
	}, nil
}

// Cut removes from a default grant what the spawner does not have itself.
func Cut(grant *schema.GrantInput, holder *kernel.Token, tick int64) {
	held := make([]string, 0, len(grant.AllowedSyscalls))
	for _, code := range grant.AllowedSyscalls {
		if row, ok := kernel.Named(code); ok && holder.Allows(row, tick) {
			held = append(held, code)
		}
	}
	grant.AllowedSyscalls = held
	for resource, quota := range grant.ResourceQuotas {
		if most := min(quota, holder.Quota(resource, tick)); most > 0 {
			grant.ResourceQuotas[resource] = most
		} else {
			delete(grant.ResourceQuotas, resource)
		}
	}
	grant.ExpiresAtTick = holder.Last()
}

// maxName bounds the name of an agent including its ancestors', in characters.
const maxName = 1024

// checkAgentID refuses an invalid name of a new agent.
func checkAgentID(field, name string) error {
	if strings.Contains(name, "/") {
		return kernel.Invalid(field, "must not contain a slash: it separates an agent's name from its child's")
	}
	if valid := schema.AgentName(name); valid != name {
		return kernel.Invalid(field, `must not be only digits, nor contain ":", "@" or "#": a command line could not tell it from a PID, a step, or a process of another kernel`).
			WithFix("choose another name, such as %s", quote.Word(valid))
	}
	return kernel.CheckName(field, name)
}

// checkChildID is checkAgentID, and accepts the name that the kernel gives to the agent of a key (PROTOCOL 4).
func checkChildID(call *kernel.Call, in *schema.SpawnInput) error {
	if call.PID == kernel.Operator && strings.HasPrefix(in.ChildAgentID, KeyIntent) && strings.HasPrefix(said(in.Intent, ""), KeyIntent) {
		return nil
	}
	return checkAgentID("child_agent_id", in.ChildAgentID)
}

// name returns the full name of a child: the given one, below its parent's if an agent spawns it. Names are unique
// among the living children of one parent; the operator's children also differ by origin.
func (d *Domain) name(call *kernel.Call, given string) (string, *fault.Fault) {
	name := given
	if parent, ok := d.table.processes.Get(call.PID); ok {
		name = parent.AgentID + "/" + given
	}
	switch {
	case utf8.RuneCountInString(name) > maxName:
		return "", kernel.Invalid("child_agent_id", "is too long: with the names of those above it, it has more than %d characters", maxName)
	case len(d.table.names[sibling{call.PID, call.Origin, name}]) > 0:
		return "", fault.ProcessNameTaken.New("a living sibling has this name already").
			WithFix(`choose another child_agent_id, or end that one; "pwos ps" shows it`)
	}
	return name, nil
}

func (d *Domain) applyPrepare(_ *kernel.Entry, in *schema.ProcessPrepareInput) { d.prepared = in }

// applySpawn adds the child under the name of the reply. In older journals that is the requested one, and siblings
// may share it.
func (d *Domain) applySpawn(e *kernel.Entry, in *schema.SpawnInput) {
	if in.Abroad() {
		d.applyErrand(e)
		return
	}
	child := d.child(e, kernel.Reply[schema.SpawnOutput](e, schema.SyscallSpawn.Output()).ChildAgentID)
	child.Priority, child.Intent, child.Role = said(in.Priority, child.Priority), said(in.Intent, ""), said(in.Role, "")
	program := d.inherited(e.PID, d.cutProgram(e.PID, in))
	d.host(child, &program)
	d.born(e, child)
	d.serve(e, child)
}

// child is the next process, with what was prepared for it.
func (d *Domain) child(e *kernel.Entry, name string) *schema.Descriptor {
	child := &schema.Descriptor{
		PID:           d.table.next,
		AgentID:       name,
		ParentPID:     e.PID,
		State:         ready,
		Priority:      "NORMAL",
		ResourceQuota: map[string]float64{},
		BirthTick:     e.Tick,
		Origin:        e.Origin,
	}
	if parent, ok := d.table.processes.Get(e.PID); ok {
		child.Paused = parent.Paused
	}
	// A spawn that a crash interrupted may have left its note for the same PID; the one for this process has a later
	// entry.
	if d.prepared != nil && d.prepared.PID == child.PID && d.prepared.ResourceQuota != nil {
		child.ResourceQuota = d.prepared.ResourceQuota
	}
	d.prepared = nil
	return child
}

// born adds a process to the table.
func (d *Domain) born(e *kernel.Entry, child *schema.Descriptor) {
	d.table.add(child)
	d.view.touch(child.PID)
	d.note(e, schema.ProcessSpawned, child.PID)
}

func said(s *string, otherwise string) string {
	if s == nil {
		return otherwise
	}
	return *s
}

package delta

import (
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema/fault"
)

// agent returns the agent whose memory a call is about: a process has its own, the operator any that it names.
func (d *Domain) agent(call *kernel.Call, named *string) (string, *fault.Fault) {
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
		return "", fault.CapabilityDenied.New(
			"pid %d may not touch the memory of agent %q: its own agent is %q: leave out agent_id, or ask the operator", call.PID, *named, p.AgentID)
	}
	return p.AgentID, nil
}

func noProcess(pid int64) *fault.Fault {
	return fault.MemoryNotFound.New("no process has pid %d: Process.List names them all", pid)
}

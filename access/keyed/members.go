package keyed

import (
	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema/fault"
)

// Members maps the other kernels of a cluster to processes: one a kernel, with the grant of its line in the members file. That
// process makes the calls of its kernel.
type Members struct{ agents *agents }

// NewMembers finds the processes of kernels, before the first call to the kernel. It uses of the options what concerns
// processes.
func NewMembers(o Options) *Members {
	return &Members{newAgents(&o, process.KernelIntent, "the members file")}
}

// Process returns the process of a kernel. It makes one at the first call, and grants it what the line says now.
func (m *Members) Process(line *access.AuthorizedKey) (pid int64, err error) {
	if line.Agent == nil || len(line.Agent.Allow) == 0 {
		return 0, fault.CapabilityDenied.New("the kernel %s may do nothing here: its line in the members file has no option allow", line.Kernel)
	}
	named, grant := *line, *line.Agent
	grant.Name = "kernel-" + line.Kernel
	named.Agent = &grant
	return m.agents.of(&named)
}

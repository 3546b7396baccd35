package daemon

import (
	"fmt"
	"strings"
	"time"

	"github.com/promptware-os/pwos/access/keyed"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
)

// warnings returns what needs the operator's attention, for pwos status.
func (d *Daemon) warnings() (all []string) {
	if d.keyed != nil {
		if warning := d.keyed.Trouble(); warning != "" {
			all = append(all, "authorized keys: "+warning)
		}
	}
	if d.remote.why != "" {
		all = append(all, d.remote.why)
	}
	if d.isHeld() {
		all = append(all, heldAgents)
	}
	if invalid := d.policies.Shown().Invalid; invalid != "" {
		all = append(all, "calls of agents are refused, since the policy is not valid: "+invalid)
	}
	if n, last := d.state.Approvals.Advisory(time.Now().UnixMilli()); n > 0 {
		all = append(all, fmt.Sprintf("approvals are advisory: %d, the last of them %s, of pid %d, which is not confined by this kernel and could have answered as its operator", n, last.ID, last.PID))
	}
	if warning := d.blobs.Trouble(); warning != "" {
		all = append(all, warning)
	}
	if d.config.Snapshots != (config.Snapshots{}) {
		all = append(all, "[snapshots] in the configuration has no effect any more: see [steps]")
	}
	if warning := d.diskTrouble(); warning != "" {
		all = append(all, warning)
	}
	all = append(all, d.disksTrouble()...)
	all = append(all, d.cluster.Warnings()...)
	if warning := keyed.Trouble(d.promptware.trusted); warning != "" {
		all = append(all, "trusted keys: "+warning)
	}
	return all
}

// warnOfOrigins logs a warning about memory that the operator does not see because it is stored under another origin.
// Adding or removing a root or an origin in the configuration changes the operator's origin. The memory of agents with keys
// has other origins by design.
func (d *Daemon) warnOfOrigins() {
	apart := map[string]bool{d.config.Origin: true}
	d.state.Processes.Living(func(p *schema.Descriptor) {
		if p.ParentPID == kernel.Operator && (strings.HasPrefix(p.Intent, process.KeyIntent) || strings.HasPrefix(p.Intent, process.KernelIntent)) {
			apart[p.Origin] = true
		}
	})
	for origin, keys := range d.state.Memory.Origins() {
		if !apart[origin] {
			d.log.Warn("memory is stored under another origin than the operator's: read it with --origin, as in: "+quote.Line("pwos", "mem", "ls", "--origin", origin),
				"origin", d.config.Origin, "other", origin, "keys", keys)
		}
	}
}

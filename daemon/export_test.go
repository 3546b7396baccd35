package daemon

import (
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// SetDomain puts a state machine in the place of the real one; Open comes after it.
func (d *Daemon) SetDomain(name schema.Domain, state kernel.Domain) {
	d.replace = func(domains map[schema.Domain]kernel.Domain) { domains[name] = state }
}

package daemon

import (
	"github.com/promptware-os/pwos/actors"
)

// runners are what does the effects of syscalls outside the kernel, by the syscall's type.
func (d *Daemon) runners() map[string]actors.Runner {
	all := d.promptware.runners()
	all["Http.Fetch"] = d.web.fetch
	return all
}

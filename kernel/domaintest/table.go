package domaintest

import "github.com/promptware-os/pwos/schema"

// Table is a process table that never changes: descriptors by PID, from 1.
type Table []schema.Descriptor

// Process implements kernel.Processes.
func (t Table) Process(pid int64) *schema.Descriptor {
	if pid < 1 || pid > int64(len(t)) {
		return nil
	}
	return &t[pid-1]
}

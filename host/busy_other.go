//go:build !linux

package host

import "time"

// Busy reports whether a process runs that the agent's program has started after a time. It cannot be found out here.
func (*Process) Busy(time.Time) bool { return true }

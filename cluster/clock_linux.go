package cluster

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is how long the machine has run, the time that it slept included.
func bootTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return time.Since(started)
	}
	return time.Duration(now.Nano())
}

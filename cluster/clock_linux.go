package cluster

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime returns the time since the machine started, including the time that it was asleep.
func bootTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return time.Since(started)
	}
	return time.Duration(now.Nano())
}

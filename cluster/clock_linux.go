package cluster

import (
	"time"

	"golang.org/x/sys/unix"
)

// BootClock is the clock of the machine since its start, the time that it slept included.
func BootClock() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return time.Since(started)
	}
	return time.Duration(now.Nano())
}

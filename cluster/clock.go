//go:build !pwos_clock

package cluster

import "time"

// BootClock returns the time since the machine started, including the time that it was asleep if the system tells it. It never goes
// back.
func BootClock() time.Duration { return bootTime() }

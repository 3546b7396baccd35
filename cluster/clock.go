//go:build !pwos_clock

package cluster

import "time"

// BootClock is the clock of the machine since its start, the time that it slept included where the system tells it. It never goes back.
func BootClock() time.Duration { return bootTime() }

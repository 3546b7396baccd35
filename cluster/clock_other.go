//go:build !linux

package cluster

import "time"

// BootClock is a clock that never goes back.
func BootClock() time.Duration { return time.Since(started) }

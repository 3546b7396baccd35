//go:build !linux

package cluster

import "time"

// BootClock returns the time since this process started. It never goes back.
func BootClock() time.Duration { return time.Since(started) }

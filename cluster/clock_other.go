//go:build !linux

package cluster

import "time"

// bootTime returns the time since this process started.
func bootTime() time.Duration { return time.Since(started) }

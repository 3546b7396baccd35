//go:build !linux

package cluster

import "time"

// bootTime is how long this process has run.
func bootTime() time.Duration { return time.Since(started) }

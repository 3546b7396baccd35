//go:build unix && !linux

package gitdirs

import "syscall"

// ctimeOf returns when a file's status was last changed. Only Linux has mount namespaces, without which nobody asks.
func ctimeOf(*syscall.Stat_t) (sec, nsec int64) { return -1, -1 }

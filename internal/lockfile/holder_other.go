//go:build unix && !linux

package lockfile

import "os"

// Holder returns 0: only Linux reports the holder of a lock.
func Holder(*os.File) int { return 0 }

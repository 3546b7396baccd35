package redis_test

import (
	"os"
	"syscall"
)

// syncData syncs without metadata such as the time of the last change.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

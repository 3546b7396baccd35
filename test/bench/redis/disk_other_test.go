//go:build !linux

package redis_test

import "os"

// syncData is fsync, where fdatasync is not available.
func syncData(f *os.File) error { return f.Sync() }

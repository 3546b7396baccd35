//go:build !linux

package redis_test

import "os"

// syncData is fsync where nothing less is to be had.
func syncData(f *os.File) error { return f.Sync() }

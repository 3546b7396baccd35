//go:build !linux

package main

import (
	"errors"
	"os"
)

// openPair returns an error: agents can have terminals only on Linux.
func openPair() (ours, theirs *os.File, err error) {
	return nil, nil, errors.New("agents can have terminals only on Linux: leave out --tty")
}

// copySettings is never called, since openPair fails.
func copySettings(int, int, bool) error { return nil }

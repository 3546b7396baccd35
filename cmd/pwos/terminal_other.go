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

// leader is never called, since openPair fails.
func (t *terminal) leader() (pid int, stopped bool) { return 0, false }

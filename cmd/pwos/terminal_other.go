//go:build !linux

package main

import (
	"errors"
	"os"
)

// openPair refuses: agents have terminals on Linux alone.
func openPair() (ours, theirs *os.File, err error) {
	return nil, nil, errors.New("an agent can have a terminal on Linux alone")
}

// leader is asked of no terminal: there are none.
func (t *terminal) leader() (pid int, stopped bool) { return 0, false }

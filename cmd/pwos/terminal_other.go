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

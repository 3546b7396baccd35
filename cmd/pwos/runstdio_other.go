//go:build !linux

package main

import (
	"syscall"
)

// canHandOver reports whether this system's kernels take over standard input, output and error.
const canHandOver = false

// dieOf does nothing: the status tells the signal.
func dieOf(syscall.Signal) {}

// canBecome reports whether a kernel with this process's rights can run a confined program as another user.
func canBecome() bool { return false }

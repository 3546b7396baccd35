//go:build !linux

package main

import (
	"errors"
	"net"
	"syscall"
)

// canHandOver reports whether this system's kernels take over standard input, output and error.
const canHandOver = false

// peerUser is never called.
func peerUser(*net.UnixConn) (int, error) { return 0, errors.ErrUnsupported }

// dieOf does nothing: the status tells the signal.
func dieOf(syscall.Signal) {}

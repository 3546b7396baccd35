//go:build !linux

package peercred

import (
	"errors"
	"net"
)

// User is for Linux only.
func User(*net.UnixConn) (uid int, err error) { return 0, errors.ErrUnsupported }

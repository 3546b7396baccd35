//go:build !linux

package sshauth_test

import (
	"errors"
	"testing"
)

// takeLease fails: only Linux has leases.
func takeLease(*testing.T, string) error { return errors.ErrUnsupported }

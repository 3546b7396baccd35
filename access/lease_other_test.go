//go:build !linux

package access_test

import (
	"errors"
	"testing"
)

// takeLease fails: only Linux has leases.
func takeLease(*testing.T, string) error { return errors.ErrUnsupported }

//go:build !linux

package dirwatch

import (
	"errors"
	"os"
)

// Open is not supported on this system.
func Open([]string) (*os.File, error) { return nil, errors.ErrUnsupported }

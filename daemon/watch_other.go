//go:build !linux

package daemon

import (
	"errors"
	"os"
)

func watchDirs([]string) (*os.File, error) { return nil, errors.ErrUnsupported }

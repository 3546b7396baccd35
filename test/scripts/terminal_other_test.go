//go:build !linux

package scripts_test

import (
	"errors"
	"os"
)

// unlockTerminal is implemented only for Linux; scripts check that with [linux].
func unlockTerminal(*os.File) (string, error) { return "", errors.ErrUnsupported }

// confines returns false: programs are confined only on Linux.
func confines() bool { return false }

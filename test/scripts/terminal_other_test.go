//go:build !linux

package scripts_test

import (
	"errors"
	"os"
)

// unlockTerminal is known for Linux alone; scripts ask for that with [linux].
func unlockTerminal(*os.File) (string, error) { return "", errors.ErrUnsupported }

// confines is false: programs are confined on Linux alone.
func confines() bool { return false }

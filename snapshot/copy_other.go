//go:build unix && !linux

package snapshot

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// clone reports that files cannot share blocks on this system.
func clone(_, _ *os.File) error { return errors.ErrUnsupported }

// copyData copies a file. It stops after most bytes.
func copyData(target, source *os.File, most int64) (int64, error) {
	return io.Copy(target, io.LimitReader(source, most+1))
}

// flush asks the system to write everything to disk.
func flush(*folder) error { return unix.Sync() }

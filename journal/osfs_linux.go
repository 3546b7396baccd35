package journal

import (
	"errors"
	"fmt"
	"syscall"
)

// keepSize is FALLOC_FL_KEEP_SIZE of fallocate(2).
const keepSize = 1

// Allocate implements File. The blocks stay allocated when the file is closed, and cannot be read.
func (f osFile) Allocate(off, length int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), keepSize, off, length)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("allocate %s: %w", f.Name(), err)
		}
	}
}

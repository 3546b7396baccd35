//go:build unix && !linux

package journal

import "errors"

// Allocate implements File.
func (osFile) Allocate(int64, int64) error { return errors.ErrUnsupported }

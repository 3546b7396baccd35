//go:build unix && !linux

package host

import (
	"fmt"
	"os"
)

// openTerminal fails: agents can have terminals only on Linux.
func openTerminal(path string) (*os.File, error) {
	return nil, fmt.Errorf("%w: a terminal for an agent", ErrUnsupported)
}

func takeTerminal() error { return nil }

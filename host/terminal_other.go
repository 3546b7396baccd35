//go:build unix && !linux

package host

import (
	"fmt"
	"os"
)

// openTerminal refuses: agents can have terminals on Linux only.
func openTerminal(path string) (*os.File, error) {
	return nil, fmt.Errorf("%w: a terminal for an agent", ErrUnsupported)
}

func takeTerminal() error { return nil }

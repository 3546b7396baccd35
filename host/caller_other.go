//go:build unix && !linux

package host

import (
	"context"
	"fmt"
	"os"
)

// caller is a client that hands over its standard input, output and error, which is possible only on Linux.
type caller struct {
	files       []handed
	opens, logs bool
}

type handed struct{ *os.File }

func (h handed) regular() bool { return false }

func (h handed) dup() (*os.File, error) { return h.File, nil }

// openCaller fails.
func openCaller(context.Context, string) (*caller, error) {
	return nil, fmt.Errorf("%w: a caller's own standard input and output", ErrUnsupported)
}

func (c *caller) giveTerminal(*os.File) error { return nil }

func (c *caller) giveLog(*os.File) error { return nil }

func (c *caller) attend(*Process) {}

func (c *caller) close() error { return nil }

func takeTerminal() error { return nil }

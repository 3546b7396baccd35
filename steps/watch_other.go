//go:build !linux

package steps

import (
	"errors"
	"os"
)

// watch knows no events here: each cut walks the tree.
type watch struct{}

func newWatch() *watch { return &watch{} }

func (*watch) take() (dirty map[string]names, all bool) { return nil, true }
func (*watch) add(string, *os.File)                     {}
func (*watch) remove(string)                            {}
func (*watch) has(string) bool                          { return true }
func (*watch) count() (uint64, bool)                    { return 0, false }
func (*watch) why() error                               { return errors.New("this system does not tell which directories changed") }
func (*watch) Close() error                             { return nil }

package host

import (
	"errors"
	"fmt"
	"os"

	"github.com/promptware-os/pwos/host/confine"
)

// Shown says what a program sees of the machine's files.
type Shown = confine.Shown

// Explain returns what the program of a command would see, and what would confine it. It starts and makes nothing. Errors are those of Start.
func (h *Host) Explain(c Command) (s Shown, level string, err error) {
	if _, err := os.Stat(c.Dir); err == nil { // else a start makes it
		if _, err := c.find(c.environ(nil)); err != nil {
			return s, "", err
		}
	}
	if c.Sandbox == SandboxOff {
		return Shown{Write: []string{"/"}}, levelOff, nil
	}
	s, err = confine.Explain(c.request(h, ""), h.means)
	if errors.Is(err, confine.ErrRefused) {
		err = fmt.Errorf("%w: %w", ErrSandbox, err)
	}
	return s, h.means.Level(), err
}
